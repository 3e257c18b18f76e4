// Package passthrough merges what upstream servers offer besides tools: resources, resource templates and
// prompts.
//
// Passthrough items are not locked: they are listed as their server lists them now, with the server's prefix
// before the name, and every request for one goes to that server. So a name or URI must identify one server
// only. An Offer is what one server lists, read strictly; Show is the part of all offers that a branch sees,
// without ambiguous items. An item that is left out is withheld with a reason; the order in which servers
// connect never decides anything.
//
// URIs are not rewritten: they also appear in tool results and in links, where they must keep their meaning.
package passthrough

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/yosida95/uritemplate/v3"

	"github.com/catalogd/catalogd/internal/strictjson"
)

// Kind is the kind of an item.
type Kind string

const (
	// Resource is a resource, Template a resource template, Prompt a prompt.
	Resource Kind = "resource"
	Template Kind = "template"
	Prompt   Kind = "prompt"
)

const (
	// maxName and maxURI cap a name and a URI or template in bytes.
	maxName, maxURI = 256, 4096
	// maxTemplates caps the templates of one server: each URI is matched against all of them.
	maxTemplates = 200
	// maxSubject caps the URI that is matched against templates, in bytes.
	maxSubject = 64 << 10
)

// Item is one resource, template or prompt of a server. It is immutable.
type Item struct {
	Kind   Kind
	Server string
	// Name is the name in the catalog, with the server's prefix; Remote is the name at the server.
	Name, Remote string
	// URI is a resource's URI, or a template's text; empty for a prompt.
	URI string
	// Shown is the item as it is listed: unchanged except for the name.
	Shown json.RawMessage

	match *regexp.Regexp // of a template
}

// fits reports whether a URI matches the template.
func (i *Item) fits(uri string) bool { return len(uri) <= maxSubject && i.match.MatchString(uri) }

// key is what must be unique over all servers: the name of a prompt, the URI or the template text of the
// others.
func (i *Item) key() string {
	if i.Kind == Prompt {
		return i.Name
	}
	return i.URI
}

// Withheld is an item that is hidden from every branch or from one, with the reason.
type Withheld struct {
	// Kind is what it is: a resource, a template or a prompt.
	Kind Kind `json:"kind"`
	// Server is the server's name in the catalog.
	Server string `json:"server"`
	// Name is the name in the catalog, URI a resource's URI or a template's text, as far as they could be
	// read.
	Name string `json:"name,omitempty"`
	URI  string `json:"uri,omitempty"`
	// Reason is why it is not passed on.
	Reason string `json:"reason"`
}

// Lists holds the items that a server listed, unchanged.
type Lists struct{ Resources, Templates, Prompts []json.RawMessage }

// Offer is what one server passes through. It is immutable.
type Offer struct {
	Server   string
	Items    []*Item
	Withheld []Withheld
	// Subscribe and Complete report whether the server supports subscriptions and argument completion.
	Subscribe, Complete bool
	// Digest identifies the content.
	Digest string
}

// Read reads what a server listed. An item that some client could reject, or that is a duplicate, is
// withheld; the others are kept.
func Read(server, prefix string, lists Lists, subscribe, complete bool) *Offer {
	o := &Offer{Server: server, Subscribe: subscribe, Complete: complete}
	sum := sha256.New()
	fmt.Fprintf(sum, "%q %q %t %t\n", server, prefix, subscribe, complete)
	for _, list := range []struct {
		kind Kind
		raw  []json.RawMessage
	}{{Resource, lists.Resources}, {Template, lists.Templates}, {Prompt, lists.Prompts}} {
		var read []*Item
		seen := map[string]int{}
		for n, raw := range list.raw {
			fmt.Fprintf(sum, "%s %d\n", list.kind, len(raw))
			sum.Write(raw)
			item := &Item{Kind: list.kind, Server: server}
			err := item.read(prefix, raw)
			if err == nil && list.kind == Template && n >= maxTemplates {
				err = fmt.Errorf("the server has more than %d templates", maxTemplates)
			}
			if err != nil {
				o.withhold(item, err.Error())
				continue
			}
			seen[item.key()]++
			read = append(read, item)
		}
		for _, item := range read {
			if seen[item.key()] > 1 {
				o.withhold(item, "the server lists it more than once")
				continue
			}
			o.Items = append(o.Items, item)
		}
	}
	o.Digest = hex.EncodeToString(sum.Sum(nil))
	return o
}

// Count is the number of items of a kind.
func (o *Offer) Count(k Kind) (n int) {
	for _, i := range o.Items {
		if i.Kind == k {
			n++
		}
	}
	return n
}

func (o *Offer) withhold(i *Item, reason string) { o.Withheld = append(o.Withheld, i.withheld(reason)) }

func (i *Item) withheld(reason string) Withheld {
	return Withheld{Kind: i.Kind, Server: i.Server, Name: i.Name, URI: i.URI, Reason: reason}
}

// read reads one listed item. Fields read before an error are kept, to identify the item in the reason.
func (i *Item) read(prefix string, raw json.RawMessage) error {
	fields, err := read(raw)
	if err != nil {
		return err
	}
	var problems []error
	if i.Remote, err = readText(fields, "name", maxName); err != nil {
		problems = append(problems, err)
	} else {
		i.Name = prefix + i.Remote
	}
	switch i.Kind {
	case Resource:
		i.URI, err = readText(fields, "uri", maxURI)
	case Template:
		i.URI, err = readText(fields, "uriTemplate", maxURI)
	}
	problems = append(problems, err)
	if err := errors.Join(problems...); err != nil {
		return errors.New(strings.ReplaceAll(err.Error(), "\n", "; "))
	}
	if i.Kind != Prompt && !scheme.MatchString(i.URI) {
		return errors.New("it has no scheme of its own, so it could be any server's")
	}
	if i.Kind == Template {
		if i.match, err = compile(i.URI); err != nil {
			return err
		}
	}
	i.Shown = raw
	if prefix != "" {
		name, _ := fields.Member("name")
		i.Shown = slices.Concat(raw[:name.At], strictjson.Append(nil, i.Name), raw[name.End:])
	}
	return nil
}

// scheme matches the literal scheme that a URI or template must begin with (RFC 3986, 3.1).
var scheme = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]*:`)

// readText reads a member that identifies something: it must be fully visible to a person.
func readText(fields *strictjson.Object, member string, most int) (string, error) {
	s := fields.Text(member)
	if s == "" {
		return "", fmt.Errorf("its %s is no text, or empty", member)
	}
	if len(s) > most {
		return "", fmt.Errorf("its %s is longer than %d bytes", member, most)
	}
	for _, r := range s {
		if r != ' ' && !unicode.IsGraphic(r) || unicode.Is(unicode.Cf, r) {
			return "", fmt.Errorf("its %s holds the character U+%04X, which nobody sees", member, r)
		}
	}
	if strings.TrimSpace(s) != s {
		return "", fmt.Errorf("its %s begins or ends with a space", member)
	}
	return s, nil
}

// read reads an object strictly. Servers cut texts inside a surrogate pair, so an unpaired surrogate is accepted.
// A duplicate name, at the top also one in another case, is an error: readers would disagree about it.
func read(raw json.RawMessage) (*strictjson.Object, error) {
	v, err := strictjson.Decode(raw, strictjson.Options{AllowUnpaired: true})
	var wrong *strictjson.Error
	switch {
	case strictjson.Is(err, strictjson.UTF8):
		return nil, errors.New("it is not UTF-8")
	case errors.As(err, &wrong) && wrong.Problem == strictjson.Duplicate:
		return nil, twice(wrong.Text)
	}
	object, ok := v.(*strictjson.Object)
	if !ok {
		return nil, errors.New("it is no object")
	}
	folded := map[string]bool{}
	for _, m := range object.Members {
		if folded[strings.ToLower(m.Key)] {
			return nil, twice(m.Key)
		}
		folded[strings.ToLower(m.Key)] = true
	}
	return object, nil
}

func twice(name string) error { return fmt.Errorf("it has the member %.40q twice", name) }

// compile returns the expression that matches the URIs of a template (RFC 6570).
func compile(text string) (match *regexp.Regexp, err error) {
	defer func() {
		if recover() != nil { // the library generates expressions that regexp rejects, such as one with 1,002 variables
			err = errors.New("its uriTemplate can't be matched")
		}
	}()
	t, err := uritemplate.New(text)
	if err != nil {
		return nil, fmt.Errorf("its uriTemplate is none of RFC 6570: %w", err)
	}
	return t.Regexp(), nil
}
