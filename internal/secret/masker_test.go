package secret_test

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/catalogd/catalogd/internal/secret"
	"github.com/catalogd/catalogd/internal/secret/masktest"
)

const marker = "REDACTED"

func TestReplace(t *testing.T) {
	t.Parallel()
	b64 := func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }
	const email = "ann@example.com"
	for _, c := range []struct{ name, value, text, want string }{
		{"as it is", email, "write to ann@example.com.", "write to REDACTED."},
		{"in other case", email, "ANN@Example.Com", "REDACTED"},
		{"letters beside it", email, "xann@example.comx", "xREDACTEDx"},
		{"letters outside of ASCII", "Jörg Groß", "JÖRG GROSS, jörg groß", "REDACTED, REDACTED"},
		{"composed letters taken apart", "Zo\u00eb", "Zoe\u0308 and Zo\u00eb", "REDACTED and REDACTED"},
		{"letters taken apart, composed", "Zoe\u0308", "ZO\u00cb", "REDACTED"},
		{"letters taken apart in base64", "Zo\u00eb Q", b64("Zoe\u0308 Q"), "REDACTED"},
		{"a line that was broken", "Ann Smith", "Ann\nSmith, Ann\tSmith, Ann\u00a0Smith, Ann\u202fSmith", "REDACTED, REDACTED, REDACTED, REDACTED"},
		{"a line break that was taken out", "12 Long Lane\nAcme", "12 Long Lane Acme", "REDACTED"},
		{"a space as HTML", "Ann Smith", "Ann&nbsp;Smith", "REDACTED"},
		{"the Kelvin sign", "kelvin", "\u212Aelvin!", "REDACTED!"},
		{"JSON", `he said "no"`, `{"a":"he said \"no\""}`, `{"a":"REDACTED"}`},
		{"JSON in JSON", `he said "no"`, `{"a":"{\"b\":\"he said \\\"no\\\"\"}"}`, `{"a":"{\"b\":\"REDACTED\"}"}`},
		{"all of it as \\u", "ann@", `\u0061\u006E\u006e\u0040`, "REDACTED"},
		{"a surrogate pair", "smile😀", `smile\ud83d\ude00!`, "REDACTED!"},
		{"JavaScript", "ann@", `\x61nn\u{40}`, "REDACTED"},
		{"a backslash at its end", `C:\dir\`, `{"a":"C:\\dir\\"}`, `{"a":"REDACTED"}`},
		{"percent", "a b&c", "?q=a%20b%26c&x=1", "?q=REDACTED&x=1"},
		{"a form", "Ann Smith", "q=Ann+Smith", "q=REDACTED"},
		{"a plus", "+47 123", "q=%2B47+123", "q=REDACTED"},
		{"percent in the value", "100%41x", "100%2541x 100%41x", "REDACTED REDACTED"},
		{"HTML", `<b>&"`, "x&lt;b&gt;&amp;&quot;y", "xREDACTEDy"},
		{"HTML by number", "ann@", "&#97;&#x6e;&#x6E;&#64;", "REDACTED"},
		{"HTML without semicolons", "<ann>", "&ltann&gtx", "REDACTEDx"},
		{"base64", email, b64(email), "REDACTED"},
		{"base64, one byte before", email, b64("a" + email + "zz"), "YREDACTEDp6"},
		{"base64, two bytes before", email, b64("ab" + email), "YWREDACTED"},
		{"base64 behind letters", email, "token" + b64(email) + " x", "tokenREDACTED x"},
		{"base64 of the URL alphabet", "??>>??>>", "Pz8-Pj8_Pj4", "REDACTED"},
		{"base64 over lines", email, "YW5uQGV4\r\nYW1wbGUu\r\nY29t", "REDACTED"},
		{"base64 of base64", email, b64(b64(email)), "REDACTED"},
		{"base64 in a URL", "??>>??>>", "x=Pz8%2BPj8%2FPj4%3D", "x=REDACTED"},
		{"base64 of JSON", `say "no"`, b64(`{"a":"say \"no\""}`), "eyJhIjoiREDACTEDJ9"},
		{"hex", email, "0x616e6e406578616d706c652e636f6d", "0xREDACTED"},
		{"upper hex", email, "616E6E406578616D706C652E636F6D", "REDACTED"},
		{"hex behind a digit", email, "7616e6e406578616d706c652e636f6d7", "7REDACTED7"},
		{"hex with colons", "ann@", "61:6e:6E:40", "REDACTED"},
		{"a short one is a word", "42", "42 420 a42 (42)", "REDACTED 420 a42 (REDACTED)"},
		{"a short one escaped", "<7>", "&lt;7&gt;", "REDACTED"},
		{"a short one in base64 stays", "abc", "YWJj", "YWJj"},
		{"the marker", "DACT", "REDACTED", "REDACTED"},
		{"nothing", email, "ann at example.com %zz &foo; \\q YWJj", "ann at example.com %zz &foo; \\q YWJj"},
	} {
		if got := secret.NewMasker(marker, []string{c.value}, nil).Replace(c.text); got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
	if secret.NewMasker(marker, []string{"", "  "}, nil).Replace("x  y") != "x  y" {
		t.Error("blanks are masked")
	}
}

// A text that was made to be decoded for long is masked whole, and soon.
func TestWorkIsBounded(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("VlZWVlZW", 1<<14)
	for range 4 {
		text = base64.StdEncoding.EncodeToString([]byte(text))[:1<<17]
	}
	m := secret.NewMasker(marker, []string{"ann@example.com"}, nil)
	for _, text := range []string{text, strings.Repeat("%2525", 1<<16), strings.Repeat(`\\\\`, 1<<16), strings.Repeat("&amp;", 1<<16), strings.Repeat("4141", 1<<16)} {
		if got := m.Replace(text); got != text && got != marker {
			t.Errorf("%.20s: got %.40q", text, got)
		}
	}
}

// A value that was put into a text in up to three encodings is not in what is left, however that is decoded.
// What has none keeps its bytes.
func TestNothingSurvives(t *testing.T) {
	t.Parallel()
	rounds := 4000
	if testing.Short() {
		rounds = 500
	}
	r := rand.New(rand.NewPCG(7, 11))
	for i := range rounds {
		value := masktest.Value(r)
		if strings.TrimSpace(value) != value || blank(value) {
			continue
		}
		hidden := masktest.Hide(r, value, secret.Layers)
		text := masktest.Filler(r, r.IntN(40)) + hidden + masktest.Filler(r, r.IntN(40))
		if !masktest.Finds(text, value) {
			t.Fatalf("round %d: the oracle does not see %q in %q", i, value, text)
		}
		left := secret.NewMasker(marker, []string{value}, nil).Replace(text)
		if masktest.Finds(left, value) {
			t.Errorf("round %d: %q in %q: left %q", i, value, text, left)
		}
		clean := masktest.Filler(r, r.IntN(200)) + hex.EncodeToString([]byte(masktest.Filler(r, 20))) + base64.StdEncoding.EncodeToString([]byte(masktest.Filler(r, 30)))
		if !masktest.Finds(clean, value) {
			if got := secret.NewMasker(marker, []string{value}, nil).Replace(clean); got != clean {
				t.Errorf("round %d: %q is not in %q: got %q", i, value, clean, got)
			}
		}
	}
}

func blank(s string) bool { return strings.Trim(s, "+ ") == "" }

func FuzzReplace(f *testing.F) {
	f.Add("ann@example.com", "say ann@example.com", uint64(1))
	f.Add(`a"b\c%41&lt;`, `\u0061`, uint64(2))
	f.Fuzz(func(t *testing.T, value, text string, seed uint64) {
		value = strings.TrimSpace(strings.ToValidUTF8(value, ""))
		if len(value) < 8 || len(value) > 200 || len(text) > 2000 || blank(value) || masktest.Finds(marker, value) {
			return
		}
		r := rand.New(rand.NewPCG(seed, 3))
		hidden := masktest.Hide(r, value, secret.Layers)
		cut := 0
		if len(text) > 0 {
			cut = r.IntN(len(text))
		}
		whole := text[:cut] + "\x00" + hidden + "\x00" + text[cut:]
		m := secret.NewMasker(marker, []string{value}, nil)
		if left := m.Replace(whole); masktest.Finds(left, value) {
			t.Errorf("%q in %q: left %q", value, whole, left)
		}
		if got := m.Replace(text); got != text && !masktest.Finds(text, value) {
			t.Errorf("%q is not in %q: got %q", value, text, got)
		}
	})
}

func BenchmarkReplace(b *testing.B) {
	values := []string{"ann@example.com", "4111111111111111", "hunter2-of-this-test", "Jörg Groß", "d1b2c3d4e5f6"}
	prose := strings.Repeat("The quick brown fox jumps over the lazy dog while documentation continues. ", 900)[:64<<10]
	object, err := json.Marshal(map[string]any{"html": "<p>" + prose[:30<<10] + "</p>", "data": base64.StdEncoding.EncodeToString([]byte(prose[:24<<10]))})
	if err != nil {
		b.Fatal(err)
	}
	m := secret.NewMasker(marker, values, nil)
	for name, text := range map[string]string{"prose": prose, "json": string(object)} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				m.Replace(text)
			}
		})
	}
}

func TestJSON(t *testing.T) {
	t.Parallel()
	m := secret.NewMasker(marker, []string{"ann@example.com", "1234.50", "987654321", "42"}, nil)
	for in, want := range map[string]string{
		`{ "a" : "ann\u0040example.com", "n":[1234.5, 987654321, 9876543210, 42] }`: `{ "a" : "REDACTED", "n":["REDACTED", "REDACTED", 9876543210, 42] }`,
		`{"ann@example.com":1}`: `{"REDACTED":1}`,
		`{"b":"<\u0061>"}`:      `{"b":"<\u0061>"}`,
		`{"b":`:                 `"REDACTED"`,
		``:                      ``,
	} {
		if got := string(m.JSON(json.RawMessage(in))); got != want {
			t.Errorf("%s: got %s, want %s", in, got, want)
		}
	}
}
