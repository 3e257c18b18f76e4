package passthrough

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
)

// Shown is what one branch sees of the offers of all servers. It is immutable.
type Shown struct {
	// Withheld are the items that the branch might see but that collide with another server's.
	Withheld []Withheld

	lists   map[Kind][]*Item
	prompts map[string]*Item
	servers []*shownServer
	// contested maps the URIs of colliding resources to the reason.
	contested map[string]string
	offers    map[string]*Offer
}

// shownServer decides whether a URI belongs to one server.
type shownServer struct {
	listed    map[string]*Item // by URI; nil for one that the branch may not see, or that collides
	templates []*Item
}

// Show returns what a branch sees of the offers; may reports whether it may see an item. An item with the key
// of another server's item, and a resource that matches another server's template, are withheld from the
// branch.
func Show(offers []*Offer, may func(*Item) bool) *Shown {
	s := &Shown{lists: map[Kind][]*Item{}, prompts: map[string]*Item{}, contested: map[string]string{}, offers: map[string]*Offer{}}
	type key struct {
		kind Kind
		text string
	}
	visible := map[key][]*Item{}
	var templates []*Item
	for _, o := range offers {
		s.offers[o.Server] = o
		for _, i := range o.Items {
			if !may(i) {
				continue
			}
			k := key{i.Kind, i.key()}
			visible[k] = append(visible[k], i)
			if i.Kind == Template {
				templates = append(templates, i)
			}
		}
	}
	for _, o := range offers {
		server := &shownServer{listed: map[string]*Item{}}
		s.servers = append(s.servers, server)
		for _, w := range o.Withheld {
			if w.Kind == Resource {
				server.listed[w.URI] = nil // it is not read through a template either
			}
		}
		for _, i := range o.Items {
			same := visible[key{i.Kind, i.key()}]
			shown := slices.Contains(same, i)
			if shown {
				if why := collision(i, same, templates); why != "" {
					s.Withheld = append(s.Withheld, i.withheld(why))
					if i.Kind == Resource {
						s.contested[i.URI] = why
					}
					shown = false
				}
			}
			if i.Kind == Resource {
				server.listed[i.URI] = nil
			}
			if !shown {
				continue
			}
			s.lists[i.Kind] = append(s.lists[i.Kind], i)
			switch i.Kind {
			case Resource:
				server.listed[i.URI] = i
			case Template:
				server.templates = append(server.templates, i)
			case Prompt:
				s.prompts[i.Name] = i
			}
		}
	}
	return s
}

// collision returns why an item could also mean another server's; empty where it can't.
func collision(i *Item, same, templates []*Item) string {
	var others []string
	for _, other := range same {
		if other != i {
			others = append(others, other.Server)
		}
	}
	if len(others) > 0 {
		return fmt.Sprintf("server %s has it as well", strings.Join(others, ", "))
	}
	if i.Kind == Resource {
		for _, t := range templates {
			if t.Server != i.Server && t.fits(i.URI) {
				return fmt.Sprintf("it fits the template %s of server %s as well", t.URI, t.Server)
			}
		}
	}
	return ""
}

// Len returns the number of items of a kind.
func (s *Shown) Len(k Kind) int { return len(s.lists[k]) }

// Page returns up to size items of a kind as the elements of a JSON array, in the order of the servers and of their
// lists. It begins after the item with the given key, which is a prompt's name, else a URI or the text of a template;
// an empty one is the beginning. ok is false if no such item is shown. last is the key of the last item in the page;
// empty where nothing follows it.
func (s *Shown) Page(k Kind, after string, size int) (elements []byte, last string, ok bool) {
	items := s.lists[k]
	if after != "" {
		at := slices.IndexFunc(items, func(i *Item) bool { return i.key() == after })
		if at < 0 {
			return nil, "", false
		}
		items = items[at+1:]
	}
	if size < len(items) {
		items = items[:size]
		last = items[size-1].key()
	}
	var b bytes.Buffer
	for n, i := range items {
		if n > 0 {
			b.WriteByte(',')
		}
		b.Write(i.Shown)
	}
	return b.Bytes(), last, true
}

// all returns the elements of a kind's whole list.
func (s *Shown) all(k Kind) []byte {
	elements, _, _ := s.Page(k, "", len(s.lists[k]))
	return elements
}

// Digest identifies the content of the lists of these kinds.
func (s *Shown) Digest(kinds ...Kind) string {
	sum := sha256.New()
	for _, k := range kinds {
		list := s.all(k)
		fmt.Fprintf(sum, "%d\n", len(list))
		sum.Write(list)
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// Prompt returns the prompt of that name.
func (s *Shown) Prompt(name string) (*Item, bool) {
	i, ok := s.prompts[name]
	return i, ok
}

// Resource returns the item through which a URI is read: the resource listed under it, or else the first
// template of its server that it matches. A listed URI is never read through a template. There is none where
// the URI could belong to two servers; why then explains it, for the operator.
func (s *Shown) Resource(uri string) (i *Item, why string) {
	if why, ok := s.contested[uri]; ok {
		return nil, why
	}
	for _, server := range s.servers {
		found, listed := server.listed[uri]
		if !listed {
			if n := slices.IndexFunc(server.templates, func(t *Item) bool { return t.fits(uri) }); n >= 0 {
				found = server.templates[n]
			}
		}
		switch {
		case found == nil:
		case i != nil:
			return nil, fmt.Sprintf("the URI could be of server %s and of server %s", i.Server, found.Server)
		default:
			i = found
		}
	}
	return i, ""
}

// Template returns the template with that text.
func (s *Shown) Template(text string) (*Item, bool) {
	n := slices.IndexFunc(s.lists[Template], func(t *Item) bool { return t.URI == text })
	if n < 0 {
		return nil, false
	}
	return s.lists[Template][n], true
}

// Offer returns the offer of a shown server.
func (s *Shown) Offer(server string) *Offer { return s.offers[server] }

// Subscribes reports whether the branch sees anything that can be subscribed to.
func (s *Shown) Subscribes() bool {
	return s.some(func(i *Item, o *Offer) bool { return i.Kind != Prompt && o.Subscribe })
}

// Completes reports whether the branch sees anything whose arguments can be completed.
func (s *Shown) Completes() bool {
	return s.some(func(i *Item, o *Offer) bool { return i.Kind != Resource && o.Complete })
}

func (s *Shown) some(is func(*Item, *Offer) bool) bool {
	for _, list := range s.lists {
		if slices.ContainsFunc(list, func(i *Item) bool { return is(i, s.offers[i.Server]) }) {
			return true
		}
	}
	return false
}
