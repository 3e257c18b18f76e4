package httpapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/catalogd/catalogd/internal/strictjson"
	"github.com/catalogd/catalogd/registry"
)

// readMembers checks that data are strictly one object whose members are among names, in this spelling, and
// returns which of them there are. what names the object in errors.
func readMembers(data []byte, what string, names ...string) (found map[string]bool, err error) {
	var bad *strictjson.Error
	switch err := strictjson.Check(data, strictjson.Options{}); {
	case err == nil:
	case errors.As(err, &bad) && bad.Problem == strictjson.Duplicate:
		return nil, fmt.Errorf("%s has the member %s twice", what, registry.Shown(bad.Text))
	default:
		return nil, fmt.Errorf("%s is not JSON that can be read in one way: %w", what, err)
	}
	found = map[string]bool{}
	unknown := ""
	err = strictjson.Members(data, func(name, _, _ []byte) {
		if unknown == "" && !slices.Contains(names, string(name)) {
			unknown = fmt.Sprintf("%q", registry.Shown(string(name)))
		}
		found[string(name)] = true
	})
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s must be an object", what)
	case unknown != "":
		return nil, fmt.Errorf("%s has the unknown member %s; there are %s", what, unknown, strings.Join(names, ", "))
	}
	return found, nil
}

// decode decodes a body whose members readMembers has checked.
func decode(data []byte, into any) error {
	err := json.Unmarshal(data, into)
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) {
		return fmt.Errorf("%s has the wrong type: got %s", wrong.Field, wrong.Value)
	}
	return err
}
