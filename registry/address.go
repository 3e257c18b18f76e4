package registry

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
)

// Address is the address that an elicitation asks the person to open (mode "url"); empty for every other
// question. Params that two parsers could read as two questions are an error.
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
		return "", fmt.Errorf("an elicitation of mode %.40q with or without an address is not known", mode)
	}
	var address string
	if json.Unmarshal(params["url"], &address) != nil || address == "" {
		return "", errors.New("the address of an elicitation is not a string")
	}
	return address, nil
}

// Page is the elicitationId of a question that asks the person to open a page; empty for any other.
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

// opens reports whether an address is https, at one of the hosts (a host, or host:port where the port isn't
// 443), and written so that every parser finds the same host in it.
func opens(address string, hosts []string) bool {
	if strings.ContainsFunc(address, func(r rune) bool { return r <= ' ' || r > '~' || r == '\\' }) {
		return false
	}
	u, err := url.Parse(address)
	return err == nil && u.Scheme == "https" && u.User == nil && u.Host != "" &&
		slices.Contains(hosts, strings.TrimSuffix(strings.ToLower(u.Host), ":443"))
}

// Members are the members of an object of JSON. A name twice is an error, and so is one that equals an exact
// one but for its case: which of them counts, parsers disagree about.
func Members(object json.RawMessage, exact ...string) (map[string]json.RawMessage, error) {
	members, ok := Split(object)
	if !ok {
		return nil, errors.New("it is not an object")
	}
	all := make(map[string]json.RawMessage, len(members))
	for _, m := range members {
		if _, twice := all[m.Name]; twice {
			return nil, fmt.Errorf("it has the member %.40q twice", m.Name)
		}
		for _, known := range exact {
			if m.Name != known && strings.EqualFold(m.Name, known) {
				return nil, fmt.Errorf("its member %.40q resembles %q", m.Name, known)
			}
		}
		all[m.Name] = m.Value
	}
	return all, nil
}
