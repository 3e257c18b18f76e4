package registry

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
)

// Address returns the URL that an elicitation asks the user to open (mode "url"); it is empty for every other
// question. Params that two JSON parsers could read differently are an error.
func (q Question) Address() (string, error) {
	if q.Kind() != "elicitation" || len(q.Params) == 0 {
		return "", nil
	}
	params, err := Members(q.Params, "mode", "url")
	if err != nil {
		return "", err
	}
	mode := "form"
	if raw, ok := params["mode"]; ok && json.Unmarshal(raw, &mode) != nil {
		return "", errors.New("the mode of an elicitation is not a string")
	}
	switch {
	case mode == "form" && params["url"] == nil:
		return "", nil
	case mode != "url":
		return "", fmt.Errorf("unknown mode %.40q of an elicitation", mode)
	}
	var address string
	if json.Unmarshal(params["url"], &address) != nil || address == "" {
		return "", errors.New("the address of an elicitation is not a string")
	}
	return address, nil
}

// Page returns the elicitationId of a question that asks the user to open a URL; it is empty for any other.
func (q Question) Page() string {
	if address, err := q.Address(); err != nil || address == "" {
		return ""
	}
	var params struct {
		ID string `json:"elicitationId"`
	}
	if json.Unmarshal(q.Params, &params) != nil {
		return ""
	}
	return params.ID
}

// opens reports whether an address is an https URL at one of the hosts (a host, or host:port if the port is
// not 443) without userinfo and without characters that parsers treat differently.
func opens(address string, hosts []string) bool {
	if strings.ContainsFunc(address, func(r rune) bool { return r <= ' ' || r > '~' || r == '\\' }) {
		return false
	}
	u, err := url.Parse(address)
	return err == nil && u.Scheme == "https" && u.User == nil && u.Host != "" &&
		slices.Contains(hosts, strings.TrimSuffix(strings.ToLower(u.Host), ":443"))
}

// Members returns the members of a JSON object. A duplicate name is an error, and so is a name that differs
// from one of exact only in case, because parsers disagree about which value counts.
func Members(object json.RawMessage, exact ...string) (map[string]json.RawMessage, error) {
	members, ok := Split(object)
	if !ok {
		return nil, errors.New("it is not an object")
	}
	all := make(map[string]json.RawMessage, len(members))
	for _, m := range members {
		if _, twice := all[m.Name]; twice {
			return nil, fmt.Errorf("it has a duplicate member %.40q", m.Name)
		}
		for _, known := range exact {
			if m.Name != known && strings.EqualFold(m.Name, known) {
				return nil, fmt.Errorf("its member %.40q differs from %q only in case", m.Name, known)
			}
		}
		all[m.Name] = m.Value
	}
	return all, nil
}
