package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/catalogd/catalogd"
	"github.com/catalogd/catalogd/registry"
)

// functions reads the descriptions of another program's Go functions, a JSON list, as stand-ins.
func (f catalogFlags) functions(e *env) (all []*registry.Function, err error) {
	if f.Functions == "" {
		return nil, nil
	}
	data, err := readFunctions(e, f.Functions)
	if err != nil {
		return nil, fmt.Errorf("--functions: %w", err)
	}
	var described []registry.Descriptor
	if err := json.Unmarshal(data, &described); err != nil {
		return nil, fmt.Errorf("--functions: %s is not the JSON list of a program's functions: %w", f.Functions, err)
	}
	for _, d := range described {
		standIn, err := registry.StandIn(d)
		if err != nil {
			return nil, fmt.Errorf("--functions: %w", err)
		}
		all = append(all, standIn)
	}
	return all, nil
}

func readFunctions(e *env, name string) ([]byte, error) {
	if name == "-" {
		return io.ReadAll(e.stdin)
	}
	return os.ReadFile(name)
}

// ownFunctions prepares to serve: this program has no Go functions, so a tool that needs one is an error.
func ownFunctions(cfg *catalogd.Config) error {
	if len(cfg.Functions) > 0 {
		return errors.New("--functions is for looking at a catalog; only the program that has its Go functions can serve it")
	}
	cfg.FunctionsElsewhere = false
	return nil
}
