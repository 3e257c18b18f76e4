package clients

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/netip"
	"net/url"
	"strings"

	"github.com/catalogd/catalogd/internal/strictjson"
)

// Server says how a client reaches a branch: over HTTP at URL, or by starting Command with Args.
type Server struct {
	Name    string
	URL     string
	Command string
	Args    []string
	// Env are the names of the environment variables that Command needs, whose values the client has. A value
	// itself is never written.
	Env []string
	// Token names the environment variable that has the client's token; empty for none. The token itself is
	// never written.
	Token string
}

// Entry is what a person needs to add a server to a client.
type Entry struct {
	// Config is a whole configuration file with the one server.
	Config []byte
	// Install is a command or link that adds the server instead; empty where the client documents none.
	Install string
	// Notes say what else the client needs.
	Notes []string
}

// Entry writes the configuration with which the client reaches the server. It fails for a server that the
// client can't reach so.
func (c Client) Entry(s Server) (Entry, error) {
	switch {
	case s.URL != "" && c.StdioOnly:
		return Entry{}, fmt.Errorf("%s reads only servers that it starts from its file: use --stdio, or add the URL in its settings", c.Title)
	case s.URL != "" && s.Token != "" && c.Variable == "":
		return Entry{}, fmt.Errorf("%s expands no variables, so the token itself would have to be in its file: use --stdio, which needs none", c.Title)
	case s.URL == "" && s.Token != "":
		return Entry{}, fmt.Errorf("a command that %s starts needs no token", c.Title)
	}
	server := c.server(s)
	top := strictjson.New(c.Under[0], strictjson.New(s.Name, server))
	if c.Listed {
		named := &strictjson.Object{Members: append(strictjson.New("name", s.Name).Members, server.Members...)}
		top = strictjson.New("name", s.Name, "version", "0.0.1", "schema", "v1", c.Under[0], []any{named})
	}
	if inputs := c.inputs(s); inputs != nil {
		list := make([]any, len(inputs))
		for i, input := range inputs {
			list[i] = input
		}
		top = &strictjson.Object{Members: append(strictjson.New("inputs", list).Members, top.Members...)}
	}
	e := Entry{Install: c.install(s, server)}
	if c.Variable == "" {
		for _, name := range s.Env {
			e.Notes = append(e.Notes, fmt.Sprintf("%s expands no variables: put the value of %s in place of %s, and keep the file from others",
				c.Title, name, placeholder(name)))
		}
	}
	if c.YAML {
		var b strings.Builder
		writeYAML(&b, top, "")
		e.Config = []byte(b.String())
	} else {
		var b bytes.Buffer
		if err := json.Indent(&b, strictjson.Append(nil, top), "", "  "); err != nil {
			return Entry{}, err
		}
		e.Config = append(b.Bytes(), '\n')
	}
	if u, err := url.Parse(s.URL); err == nil && c.Name == "librechat" && loopback(u.Hostname()) {
		e.Notes = append(e.Notes, "LibreChat may refuse a loopback address until mcpSettings of librechat.yaml (allowedDomains, allowedAddresses) "+
			"allows it; in a container, it is not that of this machine")
	}
	return e, nil
}

// server returns the entry of one server in the client's own words.
func (c Client) server(s Server) *strictjson.Object {
	o := &strictjson.Object{}
	if s.URL == "" {
		if c.StdioType != "" {
			o.Add("type", c.StdioType)
		}
		var args []any
		for _, a := range s.Args {
			args = append(args, a)
		}
		if c.Line {
			o.Add("command", append([]any{s.Command}, args...))
		} else {
			o.Add("command", s.Command)
			o.Add("args", args)
		}
		if len(s.Env) > 0 {
			env := &strictjson.Object{}
			for _, name := range s.Env {
				env.Add(name, c.refer(name))
			}
			o.Add(cmp.Or(c.EnvKey, "env"), env)
		}
		return o
	}
	if c.HTTPType != "" {
		o.Add("type", c.HTTPType)
	}
	key := c.URLKey
	if key == "" {
		key = "url"
	}
	o.Add(key, s.URL)
	if s.Token == "" {
		return o
	}
	headers := strictjson.New("headers", strictjson.New("Authorization", "Bearer "+c.refer(s.Token)))
	if c.Listed {
		o.Add("requestOptions", headers)
	} else {
		o.Add("headers", headers.Get("headers"))
	}
	return o
}

// refer returns how the client refers to an environment variable, or what a person has to put its value in place of.
func (c Client) refer(variable string) string {
	switch {
	case c.Variable == "":
		return placeholder(variable)
	case c.Inputs:
		variable = inputID(variable)
	}
	return fmt.Sprintf(c.Variable, variable)
}

func placeholder(variable string) string { return "<" + variable + ">" }

// inputs are the declarations of the inputs that the entry refers to.
func (c Client) inputs(s Server) (inputs []*strictjson.Object) {
	if !c.Inputs {
		return nil
	}
	add := func(variable, description string) {
		inputs = append(inputs, strictjson.New(
			"type", "promptString", "id", inputID(variable), "description", description, "password", true))
	}
	if s.Token != "" {
		add(s.Token, "Token of catalogd")
	}
	for _, name := range s.Env {
		add(name, name+" of catalogd")
	}
	return inputs
}

// inputID is the input of VS Code for a variable.
func inputID(variable string) string { return strings.ToLower(strings.ReplaceAll(variable, "_", "-")) }

// install is the one line that adds the server, where the client documents one.
func (c Client) install(s Server, server *strictjson.Object) string {
	text := strictjson.Append(nil, server)
	switch c.Name {
	case "claude-code":
		return "claude mcp add-json --scope project " + Shell(s.Name) + " " + Shell(string(text))
	case "cursor":
		query := url.Values{"name": {s.Name}, "config": {base64.StdEncoding.EncodeToString(text)}}
		return "cursor://anysphere.cursor-deeplink/mcp/install?" + query.Encode()
	case "vscode":
		if s.Token != "" || len(s.Env) > 0 {
			return "" // its input must be declared in the file
		}
		named := &strictjson.Object{Members: append(strictjson.New("name", s.Name).Members, server.Members...)}
		return "code --add-mcp " + Shell(string(strictjson.Append(nil, named)))
	}
	return ""
}

// Shell quotes a word for a POSIX shell.
func Shell(word string) string {
	if strings.Trim(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") == "" && word != "" {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

func loopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}
