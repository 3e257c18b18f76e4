package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/catalogd/catalogd/registry"
)

// maxArgumentsFile is the size of the largest file of arguments, in bytes.
const maxArgumentsFile = 4 << 20

// readArguments replaces @FILE and - (standard input) by the text that is read there. The error for a text
// that is not JSON does not quote it, because it may contain a secret.
func (e *env) readArguments(args *string) error {
	in, from := io.Reader(nil), ""
	if name, ok := strings.CutPrefix(*args, "@"); ok {
		if name == "" {
			return errors.New("--args @ names no file; write --args @FILE, or --args - for standard input")
		}
		f, err := os.Open(name)
		if err != nil {
			return fmt.Errorf("--args @FILE: %w", err)
		}
		defer f.Close()
		in, from = f, name
	} else if *args == "-" {
		in, from = e.stdin, "standard input"
	}
	if in != nil {
		text, err := io.ReadAll(io.LimitReader(in, maxArgumentsFile+1))
		switch {
		case err != nil:
			return fmt.Errorf("--args from %s: %w", from, err)
		case len(text) > maxArgumentsFile:
			return fmt.Errorf("--args from %s: more than 4 MiB; arguments may have that much", from)
		case len(strings.TrimSpace(string(text))) == 0:
			return fmt.Errorf("--args from %s: it is empty; %s", from, argumentsForm("name"))
		}
		*args = string(text)
	}
	var v json.RawMessage
	if err := json.Unmarshal([]byte(*args), &v); err != nil {
		switch name, _, _ := strings.Cut(*args, "="); {
		case from != "":
			return fmt.Errorf("--args from %s is not valid JSON: %w", from, err)
		case !strings.HasPrefix(strings.TrimSpace(*args), "{"):
			return fmt.Errorf("--args is not valid JSON: %w; %s", err, argumentsForm(name))
		}
		return fmt.Errorf("--args is not valid JSON: %w", err)
	}
	return nil
}

// argumentsForm says how a tool's arguments are given; name is what may be the name of one of them.
func argumentsForm(name string) string {
	if !registry.ValidName(name) {
		name = "name"
	}
	return fmt.Sprintf("the tool's arguments are one JSON object: --args '{%q: ...}', --args @FILE, or --args - for standard input", name)
}

// unknownWord is kong's error text for a word that a command doesn't know. Where it may be meant for the tool,
// as in id=7 or --id 7, it says how, and does not quote a value.
func unknownWord(text string, command *kong.Node) string {
	if !slices.ContainsFunc(command.Flags, func(f *kong.Flag) bool { return f.Name == "args" }) {
		return text
	}
	if word, ok := strings.CutPrefix(text, "unexpected argument "); ok {
		name, _, given := strings.Cut(word, "=")
		if given || strings.HasPrefix(word, "{") {
			return "unexpected argument; " + argumentsForm(name)
		}
	}
	if flag, ok := strings.CutPrefix(text, "unknown flag --"); ok {
		name, _, _ := strings.Cut(flag, ",")
		return text + "; " + argumentsForm(name)
	}
	return text
}
