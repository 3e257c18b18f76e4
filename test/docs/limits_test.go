package docs

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/catalogd/catalogd/test/internal/harness"
)

var (
	// limitSource is at the end of a row: a file or folder and the name in it, or schema.cue and a field.
	limitSource = regexp.MustCompile(`<!-- (\S+) (\S+) -->`)
	limitValue  = regexp.MustCompile(`^([\d,]+) ?(\S*)`)
	limitFlag   = regexp.MustCompile("^`--([a-z-]+)`$")
)

// TestLimits: each limit in docs/limits.md is that of the code, of the option in docs/cli.md or of the field
// in schema.cue; and each constant of the code that is called a maximum is on the page, unless it is nothing
// that a user can reach.
func TestLimits(t *testing.T) {
	t.Parallel()
	page := harness.ReadFile(t, "docs/limits.md")
	options, schema := harness.ReadFile(t, "docs/cli.md"), harness.ReadFile(t, "schema.cue")
	source := goSource(t)
	rows := 0
	for line := range strings.Lines(page) {
		cells := strings.Split(line, "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		if len(cells) != 6 || cells[1] == "what" || cells[1] == "---" {
			continue
		}
		cells = cells[1:]
		rows++
		shown, err := shownLimit(cells[1])
		if err != nil {
			t.Errorf("%s: %v", cells[0], err)
			continue
		}
		var want int64
		if named := limitSource.FindStringSubmatch(line); named == nil {
			want, err = optionDefault(options, cells[2])
		} else if named[1] == "schema.cue" {
			want, err = fieldDefault(schema, named[2])
		} else {
			want, err = source.value(named[1], named[2])
			source.shown[named[2]] = append(source.shown[named[2]], named[1])
		}
		if err != nil || shown != want {
			t.Errorf("%s: the page has %s, the code %d (%v)", cells[0], cells[1], want, err)
		}
	}
	if rows < 100 {
		t.Errorf("%d limits were compared, want at least 100: the search is wrong", rows)
	}
	for _, at := range slices.Sorted(maps.Keys(source.maxima)) {
		dir, name := filepath.Dir(at), filepath.Base(at)
		if !slices.Contains(source.shown[name], dir) && !slices.Contains(notLimits[dir], name) && !slices.Contains(notLimits[dir], "*") {
			t.Errorf("%s in %s is neither in docs/limits.md nor in notLimits", name, dir)
		}
	}
}

// notLimits are constants that are called a maximum and bound what no user meets: caches, searches, the length of what
// messages quote, formats, protocols between processes. * stands for all of a folder.
var notLimits = map[string][]string{
	"contract":                 {"maxBacktracking", "maxTranslated", "maxFill", "maxConverted", "maxPointers", "maxInt", "maxExpected", "maxWeight"},
	"contract/compat":          {"*"},
	"contract/dialect":         {"*"},
	"decision":                 {"*"},
	"decision/internal/shape":  {"*"},
	"decision/internal/source": {"maxBytes", "maxLines"},
	"decision/lint":            {"*"},
	"internal/binding":         {"maxKey", "maxDepth", "maxURI", "maxWord"},
	"internal/buildcache":      {"maxHeaderBytes", "maxFilesPerKind"},
	"internal/clients":         {"maxDepth"},
	"internal/commandline":     {"maxNesting"},
	"internal/conversation":    {"maxValue", "maxFile"},
	"internal/daemon":          {"*"},
	"internal/decisionlog":     {"maxLine", "maxPositions", "maxVisible", "maxQuotas"},
	"internal/derive":          {"maxDepth", "maxNesting", "maxConstraint", "maxFloats"},
	"internal/diff":            {"*"},
	"internal/egress":          {"maxDigests", "maxIdle", "maxInterim"},
	"internal/envelope":        {"maxDepth"},
	"internal/generation":      {"maxUpdates", "maxUndecided", "maxLost", "maxForwards", "maxViewTools"},
	"internal/gitfs":           {"maxLinks"},
	"internal/gotype":          {"*"},
	"internal/httpapi":         {"maxCallIDs"},
	"internal/importer":        {"maxDepth", "maxNodes"},
	"internal/intent":          {"*"},
	"internal/jq":              {"maxKept", "maxDepth"},
	"internal/lockfile":        {"maxName", "maxDepth"},
	"internal/mcpserver":       {"maxQuestions", "maxNoticeBytes", "maxOpen", "maxListings", "maxDeclared", "maxEnded", "maxUsed", "maxSafeInteger"},
	"internal/passthrough":     {"maxName", "maxSubject"},
	"internal/progress":        {"maxNames"},
	"internal/secret":          {"maxWork"},
	"internal/tracing":         {"maxState"},
	"internal/strictjson":      {"MaxNumber"},
	"internal/upstream":        {"maxNegotiation", "maxErrorText", "maxOpened", "maxQuestions"},
	"internal/wire":            {"maxInterned"},
	"internal/worker":          {"*"},
	"invoke":                   {"maxRates", "maxCounted"},
	"loader":                   {"maxMistakes"},
	"problem":                  {"maxPath", "maxMessage"},
	"registry":                 {"maxForms", "maxErrorText", "maxShown"},
	"cmd/catalogd":             {"maxAnswer", "maxActMessage", "maxArgumentsFile"},
}

// shownLimit reads a limit as the page writes it, in bytes, in nanoseconds or as a number.
func shownLimit(cell string) (int64, error) {
	found := limitValue.FindStringSubmatch(cell)
	if found == nil {
		return 0, fmt.Errorf("%q is no limit", cell)
	}
	n, err := strconv.ParseInt(strings.ReplaceAll(found[1], ",", ""), 10, 64)
	if err != nil {
		return 0, err
	}
	units := map[string]int64{
		"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "ms": int64(time.Millisecond), "s": int64(time.Second), "min": int64(time.Minute),
		"h": int64(time.Hour), "": 1, "bytes": 1, "characters": 1, "levels": 1,
	}
	unit, ok := units[found[2]]
	if !ok {
		return 0, fmt.Errorf("%q has an unknown unit", cell)
	}
	return n * unit, nil
}

// optionDefault returns the default of an option of the command line.
func optionDefault(options, cell string) (int64, error) {
	flag := limitFlag.FindStringSubmatch(cell)
	if flag == nil {
		return 0, fmt.Errorf("%q is no option", cell)
	}
	found := regexp.MustCompile("(?m)^\\| `(?:-., )?--" + flag[1] + "=[^`]*` \\| `([^`]+)` \\|").FindStringSubmatch(options)
	if found == nil {
		return 0, fmt.Errorf("--%s has no default in docs/cli.md", flag[1])
	}
	return plainValue(found[1])
}

// fieldDefault returns the default of a field of schema.cue, named as #Tool.timeout.
func fieldDefault(schema, field string) (int64, error) {
	definition, name, _ := strings.Cut(field, ".")
	_, text, ok := strings.Cut(schema, "\n"+definition+": {")
	text, _, _ = strings.Cut(text, "\n}\n")
	found := regexp.MustCompile(`(?m)^\t` + name + `:\s+\*"?([^" |]+)"?`).FindStringSubmatch(text)
	if !ok || found == nil {
		return 0, fmt.Errorf("schema.cue has no default for %s", field)
	}
	return plainValue(found[1])
}

func plainValue(text string) (int64, error) {
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return n, nil
	}
	d, err := time.ParseDuration(text)
	return int64(d), err
}

// limitsOf has the values that names are given in the source, by folder and file.
type limitsOf struct {
	values map[string][]ast.Expr // by folder or file, a space and the name
	maxima map[string]bool       // folder and name of constants that are called a maximum
	shown  map[string][]string   // folders or files by name, as the page has them
}

func goSource(t *testing.T) limitsOf {
	t.Helper()
	all := limitsOf{map[string][]ast.Expr{}, map[string]bool{}, map[string][]string{}}
	maximum := regexp.MustCompile(`^[mM]ax[A-Z]`)
	for _, root := range []string{"cmd", "contract", "decision", "internal", "invoke", "loader", "problem", "registry"} {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, text, 0)
			if err != nil {
				return err
			}
			name := func(e ast.Expr) string {
				switch e := e.(type) {
				case *ast.Ident:
					return e.Name
				case *ast.SelectorExpr:
					return e.Sel.Name
				}
				return ""
			}
			add := func(name string, value ast.Expr) {
				for _, at := range []string{filepath.Dir(path), path} {
					all.values[at+" "+name] = append(all.values[at+" "+name], value)
				}
			}
			ast.Inspect(file, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.GenDecl:
					for _, spec := range n.Specs {
						constants, ok := spec.(*ast.ValueSpec)
						for i := 0; ok && n.Tok == token.CONST && i < len(constants.Values); i++ {
							add(constants.Names[i].Name, constants.Values[i])
							if maximum.MatchString(constants.Names[i].Name) {
								all.maxima[filepath.Join(filepath.Dir(path), constants.Names[i].Name)] = true
							}
						}
					}
				case *ast.AssignStmt:
					if len(n.Lhs) == 1 && len(n.Rhs) == 1 {
						add(name(n.Lhs[0]), n.Rhs[0])
					}
				case *ast.KeyValueExpr: // Limit: cmp.Or(l.Limit, 1000)
					if call, ok := n.Value.(*ast.CallExpr); ok && len(call.Args) == 2 && name(call.Fun) == "Or" {
						add(name(n.Key), call.Args[1])
					}
				}
				return true
			})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// value returns the one value that a name is given in a folder or file.
func (l limitsOf) value(at, name string) (int64, error) {
	var found []int64
	for _, e := range l.values[at+" "+name] {
		if v := l.evaluate(at, e); v.Kind() == constant.Int {
			if n, exact := constant.Int64Val(v); exact && !slices.Contains(found, n) {
				found = append(found, n)
			}
		}
	}
	if len(found) != 1 {
		return 0, fmt.Errorf("%s has the values %v in %s, want one", name, found, at)
	}
	return found[0], nil
}

// evaluate returns the value of an expression of numbers, durations and constants of the same folder.
func (l limitsOf) evaluate(at string, e ast.Expr) constant.Value {
	switch e := e.(type) {
	case *ast.BasicLit:
		if e.Kind == token.INT {
			return constant.MakeFromLiteral(e.Value, e.Kind, 0)
		}
	case *ast.ParenExpr:
		return l.evaluate(at, e.X)
	case *ast.Ident:
		if values := l.values[at+" "+e.Name]; len(values) == 1 {
			return l.evaluate(at, values[0])
		}
	case *ast.SelectorExpr:
		units := map[string]time.Duration{"Millisecond": time.Millisecond, "Second": time.Second, "Minute": time.Minute, "Hour": time.Hour}
		if d, ok := units[e.Sel.Name]; ok {
			return constant.MakeInt64(int64(d))
		}
	case *ast.BinaryExpr:
		x, y := l.evaluate(at, e.X), l.evaluate(at, e.Y)
		if x.Kind() != constant.Int || y.Kind() != constant.Int {
			break
		}
		if e.Op == token.SHL {
			bits, _ := constant.Uint64Val(y)
			return constant.Shift(x, e.Op, uint(bits))
		}
		if slices.Contains([]token.Token{token.ADD, token.SUB, token.MUL}, e.Op) {
			return constant.BinaryOp(x, e.Op, y)
		}
	}
	return constant.MakeUnknown()
}
