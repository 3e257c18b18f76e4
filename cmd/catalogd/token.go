package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/catalogd/catalogd"
	"github.com/catalogd/catalogd/internal/token"
	"github.com/catalogd/catalogd/registry"
)

type tokenCmd struct {
	Create tokenCreateCmd `cmd:"" help:"Make a token, add it to the file, and print its secret, which is not stored."`
	List   tokenListCmd   `cmd:"" help:"List the tokens of a file, without their secrets."`
	Revoke tokenRevokeCmd `cmd:"" help:"Remove a token from the file; a daemon closes its bearer's sessions and streams within a second."`
}

// tokenFlags are shared by the token commands.
type tokenFlags struct {
	Tokens string `required:"" placeholder:"FILE" help:"The file of tokens, as for serve --tokens."`
}

type tokenCreateCmd struct {
	Name    string   `arg:"" help:"The name of the token's principal."`
	Branch  []string `required:"" placeholder:"NAME" sep:"none" help:"A branch that the token gives access to, or * for all; may be given several times."`
	Group   []string `placeholder:"NAME" sep:"none" help:"A group that the principal is in, for the policy; may be given several times."`
	Admin   bool     `help:"Let the bearer see details of the daemon, reload it, and see and end all calls with a side effect."`
	Expires string   `default:"90d" placeholder:"TIME" help:"When the token expires: after a duration such as 12h or 90d, or never."`
	Secret  string   `short:"o" placeholder:"FILE" help:"Write the secret to this new file, which only you can read, in place of standard output."`
	Force   bool     `help:"Make the token even if the catalog has no such branch."`
	Dir     string   `short:"C" help:"The root of the catalog that must have the branches; by default the nearest one, from the working directory upwards, if there is one."`
	Tag     []string `short:"t" placeholder:"KEY=VALUE" sep:"none" help:"Set a CUE tag of the catalog; may be given several times."`
	tokenFlags
}

// checkBranches returns an error unless the catalog has the branches. Without a catalog nothing is checked.
func (c *tokenCreateCmd) checkBranches(e *env) error {
	names := slices.DeleteFunc(slices.Clone(c.Branch), func(name string) bool { return name == token.AllBranches })
	if c.Force || len(names) == 0 {
		return nil
	}
	root, err := e.root(c.Dir)
	if err != nil {
		return err
	}
	if c.Dir == "" {
		if abs, err := filepath.Abs(root); err != nil || !isRoot(abs) {
			return err
		}
	}
	var defaults cli
	if _, err := newParser(&defaults, e.stderr, e.stderr, func(int) {}).Parse([]string{"list"}); err != nil {
		return err
	}
	flags := defaults.List.catalogFlags
	flags.Tag = c.Tag
	catalog, err := e.opened(flags, root)
	var refused *catalogd.RefusedError
	if errors.As(err, &refused) {
		fmt.Fprintf(e.stderr, "catalogd: whether the catalog has the branch can't be found out; fix it, or give --force\n")
	}
	if err != nil {
		return err
	}
	defer catalog.Close()
	all := catalog.Branches()
	for _, name := range names {
		if slices.Contains(all, name) {
			continue
		}
		hint := "it has " + strings.Join(all, ", ")
		if near := registry.Nearest(name, all); len(near) > 0 {
			hint = "did you mean " + strings.Join(near, " or ") + "?"
		}
		return fmt.Errorf("the catalog has no branch %q; %s (nothing was written; --force makes the token all the same)", name, hint)
	}
	return nil
}

// listedToken is a token as it is printed. Secret is set only when the token is created.
type listedToken struct {
	Name     string     `json:"name"`
	Branches []string   `json:"branches"`
	Groups   []string   `json:"groups"`
	Admin    bool       `json:"admin"`
	Created  *time.Time `json:"created,omitempty"`
	Expires  *time.Time `json:"expires,omitempty"`
	Expired  bool       `json:"expired"`
	Secret   string     `json:"secret,omitempty"`
}

func listed(t *token.Token, now time.Time) listedToken {
	l := listedToken{Name: t.Name, Branches: t.Branches, Groups: t.Groups, Admin: t.Admin, Expired: t.Expired(now)}
	if l.Groups == nil {
		l.Groups = []string{}
	}
	if !t.Created.IsZero() {
		l.Created = &t.Created
	}
	if !t.Expires.IsZero() {
		l.Expires = &t.Expires
	}
	return l
}

// Run prints only the secret on stdout, so that it can be piped to its store.
func (c *tokenCreateCmd) Run(e *env) error {
	now := time.Now().UTC().Truncate(time.Second)
	life, err := lifetime(c.Expires)
	if err != nil {
		return err
	}
	t := token.Token{Name: c.Name, Branches: c.Branch, Groups: c.Group, Admin: c.Admin, Created: now}
	if life > 0 {
		t.Expires = now.Add(life)
	}
	if err := c.checkBranches(e); err != nil {
		return err
	}
	secret, hash := token.New()
	t.Hash = hash
	if c.Secret != "" {
		if err := writeSecret(c.Secret, secret); err != nil {
			return err
		}
	}
	if err := token.Add(c.Tokens, t); err != nil {
		if c.Secret != "" {
			err = errors.Join(err, os.Remove(c.Secret))
		}
		return err
	}
	if e.json {
		l := listed(&t, now)
		if c.Secret == "" {
			l.Secret = secret
		}
		return e.printJSON(l)
	}
	until := "and never expires"
	if life > 0 {
		until = "until " + t.Expires.Format(time.RFC3339)
	}
	if c.Secret != "" {
		fmt.Fprintf(e.stderr, "token %s opens %s %s; its secret is in %s\n", t.Name, opened(&t), until, c.Secret)
		return nil
	}
	fmt.Fprintf(e.stderr, "token %s opens %s %s; its secret is shown this once:\n", t.Name, opened(&t), until)
	_, err = fmt.Fprintln(e.stdout, secret)
	return err
}

// writeSecret writes a secret to a new file of mode 0600.
func writeSecret(name, secret string) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(secret + "\n")
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, os.Remove(name))
	}
	return nil
}

func opened(t *token.Token) string {
	if slices.Equal(t.Branches, []string{token.AllBranches}) {
		return "every branch"
	}
	if len(t.Branches) == 1 {
		return "branch " + t.Branches[0]
	}
	return "branches " + strings.Join(t.Branches, ", ")
}

// lifetime parses how long a token is valid: a Go duration, days such as 90d, or never, which is 0.
func lifetime(text string) (time.Duration, error) {
	if text == "never" {
		return 0, nil
	}
	life, err := time.ParseDuration(text)
	if days, ok := strings.CutSuffix(text, "d"); ok {
		var n uint64
		n, err = strconv.ParseUint(days, 10, 16)
		life = time.Duration(n) * 24 * time.Hour
	}
	if err != nil || life < time.Second {
		return 0, fmt.Errorf("--expires %s is not a duration: give one such as 12h or 90d (at most 65535d), or never", text)
	}
	return life, nil
}

type tokenListCmd struct{ tokenFlags }

func (c *tokenListCmd) Run(e *env) error {
	set, warning, err := token.Load(c.Tokens)
	if err != nil {
		return err
	}
	if warning != "" {
		fmt.Fprintln(e.stderr, "catalogd: "+warning)
	}
	now := time.Now()
	list := []listedToken{}
	rows := [][]string{{"NAME", "BRANCHES", "GROUPS", "ADMIN", "CREATED", "EXPIRES"}}
	for _, t := range set.All() {
		list = append(list, listed(t, now))
		expires := "never"
		if !t.Expires.IsZero() {
			expires = t.Expires.UTC().Format(time.RFC3339)
		}
		if t.Expired(now) {
			expires += " (expired)"
		}
		created := "-"
		if !t.Created.IsZero() {
			created = t.Created.UTC().Format(time.RFC3339)
		}
		rows = append(rows, []string{t.Name, strings.Join(t.Branches, " "), strings.Join(t.Groups, " "), strconv.FormatBool(t.Admin), created, expires})
	}
	if e.json {
		return e.printJSON(list)
	}
	return e.table(rows)
}

type tokenRevokeCmd struct {
	Name string `arg:"" help:"The token's name."`
	tokenFlags
}

func (c *tokenRevokeCmd) Run(e *env) error {
	err := token.Remove(c.Tokens, c.Name)
	var unknown *token.UnknownError
	if errors.As(err, &unknown) {
		if near := registry.Nearest(c.Name, unknown.Names); len(near) > 0 {
			return fmt.Errorf("%w; did you mean %s?", err, strings.Join(near, " or "))
		}
	}
	if err != nil {
		return err
	}
	if e.json {
		return e.printJSON(map[string]string{"revoked": c.Name})
	}
	_, err = fmt.Fprintf(e.stdout, "token %s is revoked\n", c.Name)
	return err
}
