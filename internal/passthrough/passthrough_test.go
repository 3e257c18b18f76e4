package passthrough_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/catalogd/catalogd/internal/passthrough"
)

func raws(items ...string) (list []json.RawMessage) {
	for _, i := range items {
		list = append(list, json.RawMessage(i))
	}
	return list
}

func resource(name, uri string) string { return fmt.Sprintf(`{"name":%q,"uri":%q}`, name, uri) }
func template(name, uri string) string { return fmt.Sprintf(`{"name":%q,"uriTemplate":%q}`, name, uri) }
func prompt(name string) string        { return fmt.Sprintf(`{"name":%q}`, name) }

func all(*passthrough.Item) bool { return true }

// list is the list of a kind in one page.
func list(s *passthrough.Shown, k passthrough.Kind) string {
	elements, _, _ := s.Page(k, "", s.Len(k))
	return string(elements)
}

func offer(server string, lists passthrough.Lists) *passthrough.Offer {
	return passthrough.Read(server, "", lists, true, true)
}

// An item is shown as it came, to the byte, but for the prefix before its name.
func TestBytesStay(t *testing.T) {
	t.Parallel()
	item := `{ "title":"A & <b>", "x-big":9007199254740993, "name" : "page" , "uri":"wiki://a?b=ü", "_meta":{"k":1.0} }`
	for prefix, want := range map[string]string{"": item, "w_": strings.Replace(item, `"page"`, `"w_page"`, 1)} {
		o := passthrough.Read("wiki", prefix, passthrough.Lists{Resources: raws(item)}, false, false)
		if len(o.Withheld) > 0 {
			t.Fatal(o.Withheld)
		}
		if got := list(passthrough.Show([]*passthrough.Offer{o}, all), passthrough.Resource); got != want {
			t.Errorf("prefix %q:\n got %s\nwant [%s]", prefix, got, want)
		}
	}
}

func TestWithheld(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		lists  passthrough.Lists
		reason string
	}{
		{"no object", passthrough.Lists{Prompts: raws(`"greet"`)}, "no object"},
		{"no name", passthrough.Lists{Prompts: raws(`{}`)}, "its name is no text"},
		{"name is no text", passthrough.Lists{Prompts: raws(`{"name":1}`)}, "its name is no text"},
		{"empty name", passthrough.Lists{Prompts: raws(prompt(""))}, "its name is no text, or empty"},
		{"long name", passthrough.Lists{Prompts: raws(prompt(strings.Repeat("x", 257)))}, "longer than 256"},
		{"direction mark", passthrough.Lists{Prompts: raws(prompt("a\u202eb"))}, "U+202E"},
		{"zero width", passthrough.Lists{Prompts: raws(prompt("a\u200bb"))}, "U+200B"},
		{"line end", passthrough.Lists{Prompts: raws(prompt("a\nb"))}, "U+000A"},
		{"space at the end", passthrough.Lists{Prompts: raws(prompt("a "))}, "ends with a space"},
		{"twice", passthrough.Lists{Prompts: raws(prompt("a"), prompt("a"))}, "more than once"},
		{"key twice", passthrough.Lists{Prompts: raws(`{"name":"a","name":"b"}`)}, `the member "name" twice`},
		{"key in two cases", passthrough.Lists{Resources: raws(`{"name":"a","uri":"x:a","URI":"x:b"}`)}, `the member "URI" twice`},
		{"not UTF-8", passthrough.Lists{Prompts: raws("{\"name\":\"a\xff\"}")}, "not UTF-8"},
		{"no uri", passthrough.Lists{Resources: raws(prompt("a"))}, "its uri is no text"},
		{"no scheme", passthrough.Lists{Resources: raws(resource("a", "/etc/passwd"))}, "no scheme"},
		{"long uri", passthrough.Lists{Resources: raws(resource("a", "x:"+strings.Repeat("a", 4096)))}, "longer than 4096"},
		{"a template of everything", passthrough.Lists{Templates: raws(template("a", "{+uri}"))}, "no scheme"},
		{"no template", passthrough.Lists{Templates: raws(template("a", "x:{"))}, "RFC 6570"},
		{"a template that regexp refuses", passthrough.Lists{Templates: raws(template("a", "x:{"+strings.Repeat("a,", 1001)+"a}"))}, "can't be matched"},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := offer("s", c.lists)
			if len(o.Withheld) == 0 || !strings.Contains(o.Withheld[0].Reason, c.reason) {
				t.Errorf("withheld %v, want %q", o.Withheld, c.reason)
			}
			if len(o.Items) > 0 {
				t.Errorf("shown: %v", o.Items[0])
			}
		})
	}
	var many []string
	for i := range 201 {
		many = append(many, template(fmt.Sprint("t", i), fmt.Sprintf("x%d:{a}", i)))
	}
	if o := offer("s", passthrough.Lists{Templates: raws(many...)}); len(o.Items) != 200 || len(o.Withheld) != 1 {
		t.Errorf("%d templates, %d withheld", len(o.Items), len(o.Withheld))
	}
}

// A bad item costs nothing but itself.
func TestSiblingsStand(t *testing.T) {
	t.Parallel()
	o := offer("s", passthrough.Lists{Prompts: raws(`{}`, prompt("good"))})
	if len(o.Items) != 1 || o.Items[0].Name != "good" {
		t.Errorf("%v, withheld %v", o.Items, o.Withheld)
	}
}

// What two servers have is withheld from a branch that would see both, whichever came first; one that sees one of them has
// that.
func TestCollisions(t *testing.T) {
	t.Parallel()
	a := offer("a", passthrough.Lists{
		Resources: raws(resource("r", "x:same"), resource("own", "x:a"), resource("fits", "y:1")),
		Templates: raws(template("t", "z:{id}")), Prompts: raws(prompt("p"), prompt("only"))})
	b := offer("b", passthrough.Lists{
		Resources: raws(resource("r", "x:same")), Templates: raws(template("t", "z:{id}"), template("y", "y:{id}")), Prompts: raws(prompt("p"))})
	for _, offers := range [][]*passthrough.Offer{{a, b}, {b, a}} {
		s := passthrough.Show(offers, all)
		for kind, want := range map[passthrough.Kind]string{
			passthrough.Resource: `{"name":"own","uri":"x:a"}`, passthrough.Template: `{"name":"y","uriTemplate":"y:{id}"}`, passthrough.Prompt: `{"name":"only"}`,
		} {
			if got := list(s, kind); got != want {
				t.Errorf("%s: %s, want %s", kind, got, want)
			}
		}
		var reasons []string
		for _, w := range s.Withheld {
			reasons = append(reasons, fmt.Sprintf("%s %s of %s: %s", w.Kind, w.Name, w.Server, w.Reason))
		}
		slices.Sort(reasons)
		want := []string{
			"prompt p of a: server b has it as well", "prompt p of b: server a has it as well",
			"resource fits of a: it fits the template y:{id} of server b as well",
			"resource r of a: server b has it as well", "resource r of b: server a has it as well",
			"template t of a: server b has it as well", "template t of b: server a has it as well",
		}
		if !slices.Equal(reasons, want) {
			t.Errorf("withheld:\n%s", strings.Join(reasons, "\n"))
		}
		for _, uri := range []string{"x:same", "y:1", "z:1"} {
			if i, _ := s.Resource(uri); i != nil {
				t.Errorf("%s is read from %s", uri, i.Server)
			}
		}
		if _, ok := s.Prompt("p"); ok {
			t.Error("p is somebody's")
		}
	}
	only := passthrough.Show([]*passthrough.Offer{a, b}, func(i *passthrough.Item) bool { return i.Server == "b" })
	if i, _ := only.Resource("x:same"); i == nil || i.Server != "b" || len(only.Withheld) > 0 {
		t.Errorf("the branch that sees only b's reads %v; withheld %v", i, only.Withheld)
	}
}

// A URI that fits templates of two servers is nobody's, and the operator learns why.
func TestAmbiguousURI(t *testing.T) {
	t.Parallel()
	s := passthrough.Show([]*passthrough.Offer{
		offer("a", passthrough.Lists{Templates: raws(template("t", "file:///{+path}"))}),
		offer("b", passthrough.Lists{Templates: raws(template("t", "file:///home/{name}"))}),
	}, all)
	if i, why := s.Resource("file:///home/x"); i != nil || !strings.Contains(why, "server a and of server b") {
		t.Errorf("%v, %q", i, why)
	}
	if i, _ := s.Resource("file:///etc/x"); i == nil || i.Server != "a" {
		t.Errorf("%v", i)
	}
}

// What is listed is decided as what is listed, and not as what fits a template of its server.
func TestListedBeforeTemplate(t *testing.T) {
	t.Parallel()
	o := offer("a", passthrough.Lists{Resources: raws(resource("secret", "x:secret"), resource("twice", "x:2"), resource("twice", "x:2")), Templates: raws(template("t", "x:{id}"))})
	s := passthrough.Show([]*passthrough.Offer{o}, func(i *passthrough.Item) bool { return i.Name != "secret" })
	for uri, want := range map[string]string{"x:secret": "", "x:2": "", "x:other": "t", "x:a/b": "", "y:a": ""} {
		i, _ := s.Resource(uri)
		if got := ""; i != nil {
			if got = i.Name; got != want {
				t.Errorf("%s is %s", uri, got)
			}
		} else if want != "" {
			t.Errorf("%s is nothing", uri)
		}
	}
	if _, ok := s.Template("x:{id}"); !ok {
		t.Error("the template isn't there")
	}
}

func TestReadResult(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ raw, member, members, meta, fails string }{
		{raw: `{"contents":[{"uri":"a","text":"1.0"}]}`, member: "contents", members: `"contents":[{"uri":"a","text":"1.0"}]`},
		{raw: `{ "resultType":"complete", "b":9007199254740993 ,"contents":[], "ttlMs":5,"cacheScope":"public","_meta":{"x":1}}`,
			member: "contents", members: `"b":9007199254740993,"contents":[]`, meta: `{"x":1}`},
		{raw: `{"a\"b":1,"messages":[]}`, member: "messages", members: `"a\"b":1,"messages":[]`},
		{raw: `{"completion":{"values":["a"]}}`, member: "completion", members: `"completion":{"values":["a"]}`},
		{raw: `[]`, member: "contents", fails: "no object"},
		{raw: `{}`, member: "contents", fails: "contents of its result is no list"},
		{raw: `{"contents":null}`, member: "contents", fails: "is no list"},
		{raw: `{"contents":[1]}`, member: "contents", fails: "element 0"},
		{raw: `{"completion":[]}`, member: "completion", fails: "is no object"},
		{raw: `{"contents":[],"contents":[]}`, member: "contents", fails: "twice"},
		{raw: `{"contents":[],"_meta":1}`, member: "contents", fails: "_meta"},
		{raw: `{"resultType":"other","contents":[]}`, member: "contents", fails: "unknown type"},
		{raw: "{\"contents\":[],\"a\":\"\xff\"}", member: "contents", fails: "UTF-8"},
	} {
		r, err := passthrough.ReadResult(json.RawMessage(c.raw), c.member)
		if c.fails != "" {
			if err == nil || !strings.Contains(err.Error(), c.fails) {
				t.Errorf("%s: %v, want %q", c.raw, err, c.fails)
			}
			continue
		}
		if err != nil || string(r.Members) != c.members || string(r.Meta) != c.meta {
			t.Errorf("%s: %s, %s, %v", c.raw, r.Members, r.Meta, err)
		}
	}
	if r, err := passthrough.ReadResult([]byte(`{"contents":[],"ttlMs":5}`), "contents"); err != nil || r.TTL != 5 {
		t.Errorf("%v, %v", r.TTL, err)
	}
	if _, err := passthrough.ReadResult([]byte(`{"resultType":"input_required"}`), "messages"); !errors.Is(err, passthrough.ErrAsksInput) {
		t.Error(err)
	}
}

// Pages follow each other in the order of the servers, and an item that is not shown begins none.
func TestPages(t *testing.T) {
	t.Parallel()
	b := offer("b", passthrough.Lists{Prompts: raws(prompt("z"), prompt("y"))})
	s := passthrough.Show([]*passthrough.Offer{b, offer("a", passthrough.Lists{Prompts: raws(prompt("x"))})}, all)
	for _, c := range []struct {
		after      string
		size       int
		want, last string
		ok         bool
	}{
		{"", 1, `{"name":"z"}`, "z", true},
		{"z", 1, `{"name":"y"}`, "y", true},
		{"y", 1, `{"name":"x"}`, "", true},
		{"x", 1, "", "", true},
		{"", 2, `{"name":"z"},{"name":"y"}`, "y", true},
		{"", 3, `{"name":"z"},{"name":"y"},{"name":"x"}`, "", true},
		{"w", 1, "", "", false},
	} {
		got, last, ok := s.Page(passthrough.Prompt, c.after, c.size)
		if string(got) != c.want || last != c.last || ok != c.ok {
			t.Errorf("%d after %q: got %s, %q, %v, want %s, %q, %v", c.size, c.after, got, last, ok, c.want, c.last, c.ok)
		}
	}
}
