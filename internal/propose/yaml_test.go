package propose_test

import (
	"reflect"
	"testing"

	"github.com/open-policy-agent/opa/v1/util"
	"go.yaml.in/yaml/v3"

	"github.com/catalogd/catalogd/decision/trust"
	"github.com/catalogd/catalogd/internal/propose"
)

// hard are texts that YAML reads as something else without quotes, or not at all.
var hard = []string{
	"", " ", "a b", "true", "Yes", "no", "on", "OFF", "null", "~", "y", "N", "1", "-1", "1e3", "0x1f", "0o7", "1_000", ".5", ".inf", "-.inf", ".nan", "1:30",
	"2001-01-01", "-", "--", "-u", "--flag=x", "?", "? a", ": a", "a: b", "a:", "#a", "a #b", "&a", "*a", "!a", "|", ">", "%a", "@a", "`a`", "[a]", "{a}",
	"{a", "a,b", "\"a\"", "'a'", "\\n", "a\nb", "a\r\nb", "a\tb", "\x00", "\x1b[31m", "\x7f", "\u0085", "\u00a0", "\u2028", "\ufeff", "\u202e", "ü", "日本", "😀",
	"<<", "=", "a=b", "./x.sh", "../x", "/usr/bin/x", "+%Y-%m-%dT%H:%M:%SZ", "x@1.2.3", "@scope/x@1.2.3", "C:\\x", "entries:", "---", "...",
}

// A proposed entry is read as what was meant, by both readers of the policy's data, whatever is in it.
func TestYAMLIsWhatWasMeant(t *testing.T) {
	t.Parallel()
	for _, text := range hard {
		target := trust.Target{Kind: trust.Stdio, Command: &trust.Command{
			Declared: "x", Path: "/bin/x", Args: []string{text, "-" + text, text + "x"}, Dir: text, Env: []string{"A"},
		}}
		e := propose.For(target, trust.Observed{RunsCode: "says " + text, Unpinned: text + text, InTree: true})
		e.Name = text
		written := "entries:\n" + e.YAML("for "+text)
		want := map[string]any{"entries": map[string]any{text: map[string]any{
			"command": []any{"x", text, "-" + text, text + "x"}, "env": []any{"A"}, "in_tree": true, "interpreter": true,
		}}}
		entry := want["entries"].(map[string]any)[text].(map[string]any)
		if text != "" {
			entry["dir"], entry["unpinned"] = text, true
		}
		var byOPA, byYAML map[string]any
		if err := util.Unmarshal([]byte(written), &byOPA); err != nil {
			t.Errorf("%q: %v\n%s", text, err, written)
		} else if !reflect.DeepEqual(byOPA, want) {
			t.Errorf("%q is read as %v\n%s", text, byOPA, written)
		}
		if err := yaml.Unmarshal([]byte(written), &byYAML); err != nil {
			t.Errorf("%q: %v\n%s", text, err, written)
		} else if !reflect.DeepEqual(byYAML, want) {
			t.Errorf("%q is read as %v\n%s", text, byYAML, written)
		}
	}
}

// An entry for an address grants what the shipped policy asks of an http tool: its headers, and the arguments in them.
func TestArgumentsInHeadersAreProposed(t *testing.T) {
	t.Parallel()
	target := trust.Target{
		Kind: trust.HTTP, Headers: []string{"Accept", "X-Team"}, FromCall: []string{"team"}, Secrets: []string{"env:KEY"},
		URL: &trust.URL{Scheme: "https", Host: "a.example", Port: 443, Path: "/v1", Segments: []string{"v1"}},
	}
	want := map[string]any{
		"host": "a.example", "path": "/v1", "headers": []string{"X-Team"}, "from_call": []string{"team"}, "secrets": []string{"env:KEY"},
	}
	if got := propose.For(target, trust.Observed{Addresses: []string{"93.184.216.34"}}).Value(); !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
