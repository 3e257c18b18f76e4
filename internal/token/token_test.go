package token_test

import (
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/catalogd/catalogd/internal/token"
)

func TestSecrets(t *testing.T) {
	t.Parallel()
	form := regexp.MustCompile(`^cat_[0-9A-Za-z]{49}$`)
	secret, hash := token.New()
	set := parse(t, line("ci", hash, `["research"]`, ""))
	now := time.Now()
	if found := set.Find(secret, now); found == nil || found.Name != "ci" {
		t.Fatalf("%+v", found)
	}
	for i := range secret {
		for _, c := range []string{"", "0", "z", secret[i:i+1] + "0"} {
			if near := secret[:i] + c + secret[i+1:]; near != secret && set.Find(near, now) != nil {
				t.Errorf("%d: %q is good", i, near)
			}
		}
	}
	for _, other := range []string{"", "cat_", " " + secret, secret + " ", secret + "\x00", strings.ToUpper(secret), hex.EncodeToString(hash[:]), strings.Repeat("a", 1<<20)} {
		if set.Find(other, now) != nil {
			t.Errorf("%.80q is good", other)
		}
	}
	seen := map[string]bool{}
	for range 1000 {
		secret, _ := token.New()
		if !form.MatchString(secret) || seen[secret] {
			t.Fatalf("%q", secret)
		}
		seen[secret] = true
		// Another's secret is well-formed, and still nobody's here.
		if set.Find(secret, now) != nil {
			t.Fatal("a secret that was never listed is good")
		}
	}
}

func line(name string, hash token.Hash, branches, more string) string {
	return fmt.Sprintf(`{"name":%q,"sha256":"%x","branches":%s%s}`, name, hash, branches, more) + "\n"
}

func parse(t *testing.T, text string) *token.Set {
	t.Helper()
	set, err := token.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return set
}

func TestOpens(t *testing.T) {
	t.Parallel()
	_, hash := token.New()
	for branches, want := range map[string]map[string]bool{
		`["research"]`:           {"research": true, "Research": false, "research2": false, "": false, "*": false},
		`["research","default"]`: {"research": true, "default": true, "other": false},
		`["*"]`:                  {"research": true, "default": true},
	} {
		for branch, opens := range want {
			if got := parse(t, line("x", hash, branches, "")).All()[0].Opens(branch); got != opens {
				t.Errorf("%s opens %q: %v", branches, branch, got)
			}
		}
	}
}

func TestExpiry(t *testing.T) {
	t.Parallel()
	secret, hash := token.New()
	set := parse(t, line("x", hash, `["*"]`, `,"expires":"2026-01-02T03:04:05Z"`))
	end := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for at, good := range map[time.Time]bool{end.Add(-1): true, end: false, end.Add(time.Hour): false} {
		if (set.Find(secret, at) != nil) != good || (set.Get(hash, at) != nil) != good {
			t.Errorf("%v: want %v", at, good)
		}
	}
}

// A file with anything wrong in it is refused whole, with the line; a misspelt member must not open more.
func TestBadFiles(t *testing.T) {
	t.Parallel()
	_, h := token.New()
	_, other := token.New()
	good := line("a", h, `["research"]`, "")
	for text, want := range map[string]string{
		"x":                                     "line 1: it is no JSON object of a token; `catalogd token create` writes such lines",
		"# comment\n\n" + good + `{"name":"b"}`: `line 4: token "b" opens no branch; name some, or "*" for all`,
		good + line("a", other, `["*"]`, ""):    `line 2: the name "a" is taken by line 1; revoke one of them`,
		good + line("b", h, `["*"]`, ""):        `line 2: "b" has the secret of "a"; revoke one of them and make a new one`,
		line("a", h, `["x","*"]`, ""):           `line 1: token "a" opens "*", which is all, and names others; say one of both`,
		line("a", h, `["x/y"]`, ""):             `line 1: token "a" opens "x/y", which is not a branch name`,
		line("a", h, `[]`, ""):                  `line 1: token "a" opens no branch; name some, or "*" for all`,
		line("a", h, `"*"`, ""):                 `line 1: branches has the wrong type`,
		line("a", h, `["*"]`, `,"expire":"2020-01-01T00:00:00Z"`):                  `line 1: unknown field "expire"`,
		line("a", h, `["*"]`, `,"expires":"tomorrow"`):                             "line 1: it is no JSON object of a token; `catalogd token create` writes such lines",
		line("a", h, `["*"]`, `,"admin":"yes"`):                                    `line 1: admin has the wrong type`,
		line("a", h, `["x"]`, `,"branches":["*"]`):                                 `line 1: branches is given twice`,
		line("a", h, `["x"]`, `,"BRANCHES":["*"]`):                                 `line 1: unknown field "BRANCHES"`,
		line("a", h, `["x"]`, `,"brancheſ":["*"]`):                                 "line 1: unknown field \"brancheſ\"",
		line("a", h, `["x"]`, `,"groups":["a b"]`):                                 `line 1: token "a" has the group "a b", which is not a valid name: letters, digits and . _ @ -, at most 128, the first a letter or digit`,
		line("local", h, `["x"]`, ""):                                              `line 1: the name "local" is the operator's, who needs no token; choose another`,
		line("", h, `["x"]`, ""):                                                   `line 1: the name "" is not one: letters, digits and . _ @ -, at most 128, the first a letter or digit`,
		`{"name":"a","branches":["x"]}`:                                            `line 1: token "a" has no sha256`,
		`{"name":"a","sha256":"12","branches":["x"]}`:                              `line 1: sha256 must be 64 digits in hex`,
		`{"name":"a","sha256":"` + strings.Repeat("g", 64) + `","branches":["x"]}`: `line 1: sha256 must be 64 digits in hex`,
		strings.TrimSpace(good) + ` {}`:                                            `line 1: there is text after the token; each token has its own line`,
		`{"name":"` + strings.Repeat("a", token.MaxLine) + `"}`:                    `line 1: it is longer than 65536 bytes`,
	} {
		if _, err := token.Parse([]byte(text)); err == nil || err.Error() != want {
			t.Errorf("%.200q:\n got %v\nwant %s", text, err, want)
		}
	}
	var many strings.Builder
	for i := range token.MaxTokens + 1 {
		many.WriteString(line(fmt.Sprint("t", i), token.Hash{byte(i), byte(i >> 8), 1}, `["*"]`, ""))
	}
	if _, err := token.Parse([]byte(many.String())); err == nil || err.Error() != "line 10001: there are more than 10000 tokens" {
		t.Errorf("too many: %v", err)
	}
}

// FuzzParse holds that what is read is what Add would have written: reading never opens what a line does not say.
func FuzzParse(f *testing.F) {
	_, h := token.New()
	f.Add([]byte(line("a", h, `["x"]`, `,"groups":["g"],"admin":true`)))
	f.Add([]byte("# c\n\n{}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		set, err := token.Parse(data)
		if err != nil {
			return
		}
		path := filepath.Join(t.TempDir(), "tokens")
		for _, one := range set.All() {
			if err := token.Add(path, *one); err != nil {
				t.Fatalf("%q reads as %+v, which can't be written: %v", data, one, err)
			}
		}
		if len(set.All()) == 0 {
			return
		}
		again, _, err := token.Load(path)
		if err != nil || len(again.All()) != len(set.All()) {
			t.Fatalf("%q: %v", data, err)
		}
	})
}

// What else stands in the file stays, and a file that isn't there is made for its owner alone.
func TestEdit(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "tokens")
	add := func(name string) {
		t.Helper()
		_, hash := token.New()
		if err := token.Add(path, token.Token{Name: name, Hash: hash, Branches: []string{"x"}}); err != nil {
			t.Fatal(err)
		}
	}
	add("a")
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("%v %v", info.Mode(), err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, append(data, "# mine, without an end"...), 0o600); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	path = link
	add("b")
	if err := token.Remove(path, "a"); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if lines := strings.Split(string(got), "\n"); len(lines) != 4 || lines[1] != "# mine, without an end" || !strings.Contains(lines[2], `"name":"b"`) || lines[3] != "" {
		t.Errorf("%q", got)
	}
	if info, err := os.Lstat(path); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link was replaced: %v %v", info, err)
	}
	if left, err := os.ReadDir(filepath.Dir(path)); err != nil || len(left) != 1 {
		t.Errorf("left behind: %v %v", left, err)
	}
	if err := token.Remove(path, "a"); err == nil || err.Error() != `there is no token "a"` {
		t.Errorf("%v", err)
	}
}

// Many who add and remove at once lose nothing, and whoever reads meanwhile sees whole files.
func TestEditAtOnce(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "tokens")
	const editors, each = 8, 10
	var all sync.WaitGroup
	for i := range editors {
		all.Go(func() {
			for j := range each {
				_, hash := token.New()
				name := fmt.Sprintf("t%d.%d", i, j)
				if err := token.Add(path, token.Token{Name: name, Hash: hash, Branches: []string{"x"}}); err != nil {
					t.Error(err)
				}
				if _, _, err := token.Load(path); err != nil {
					t.Error(err)
				}
				if j%2 == 1 {
					if err := token.Remove(path, name); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	all.Wait()
	set, _, err := token.Load(path)
	if err != nil || len(set.All()) != editors*each/2 {
		t.Errorf("%d tokens; want %d: %v", len(set.All()), editors*each/2, err)
	}
}

// BenchmarkFind is what a request costs beside one without tokens: 10,000 tokens, one of which is looked for.
func BenchmarkFind(b *testing.B) {
	var file strings.Builder
	secret, hash := token.New()
	file.WriteString(line("me", hash, `["*"]`, ""))
	for i := range token.MaxTokens - 1 {
		file.WriteString(line(fmt.Sprint("t", i), token.Hash{byte(i), byte(i >> 8), 1}, `["*"]`, ""))
	}
	set, err := token.Parse([]byte(file.String()))
	if err != nil {
		b.Fatal(err)
	}
	now := time.Now()
	b.ReportAllocs()
	for b.Loop() {
		if set.Find(secret, now) == nil {
			b.Fatal("not found")
		}
	}
}
