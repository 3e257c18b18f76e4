package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

const (
	// library is the folder of the policy's library, which belongs to catalogd.
	library = "policy/catalogd/"
	// vendored begins the first line of every file of the library.
	vendored = "# Part of catalogd: do not edit."
)

// upgrade replaces what is catalogd's in a catalog that exists: schema.cue, schemas/, and the library of the policy
// where the policy has it. It changes no file that a person has edited, except those that say not to.
func (c *initCmd) upgrade(e *env) error {
	if info, err := os.Stat(c.Dir); err != nil || !info.IsDir() {
		return fmt.Errorf("there is no directory %s; --upgrade is for a catalog that exists", c.Dir)
	}
	files, err := starterFiles()
	if err != nil {
		return err
	}
	remove, edited, err := c.outdated(files)
	if err != nil {
		return err
	}
	_, err = os.Stat(c.path(library))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	moves := len(edited) == 0 && slices.ContainsFunc(remove, func(name string) bool { return strings.HasPrefix(name, "policy/lib/") })
	replace := map[string][]byte{}
	for name, want := range files {
		switch {
		case name == "schema.cue" || strings.HasPrefix(name, "schemas/"):
		case strings.HasPrefix(name, library) && (err == nil || moves):
		case moves && slices.Contains(remove, name):
		default:
			continue
		}
		have, err := os.ReadFile(c.path(name))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if err != nil || !bytes.Equal(have, want) {
			replace[name] = want
		}
	}
	if !moves {
		remove = nil
	}
	remove = slices.DeleteFunc(remove, func(name string) bool { return replace[name] != nil })
	gone, err := c.unshipped(files)
	if err != nil {
		return err
	}
	remove = append(remove, gone...)
	// The new library is there before the old one goes; a daemon that looks in between refuses both, and goes on serving.
	if err := c.write(replace); err != nil {
		return err
	}
	for _, name := range remove {
		if err := os.Remove(c.path(name)); err != nil {
			return err
		}
	}
	if entries, err := os.ReadDir(c.path("policy/lib")); err == nil && len(entries) == 0 {
		if err := os.Remove(c.path("policy/lib")); err != nil {
			return err
		}
	}
	if e.json {
		return e.printJSON(map[string]any{"written": names(replace), "removed": append([]string{}, remove...)})
	}
	for _, name := range names(replace) {
		fmt.Fprintln(e.stdout, name)
	}
	for _, name := range remove {
		fmt.Fprintln(e.stdout, name, "removed")
	}
	if len(edited) > 0 {
		fmt.Fprintf(e.stderr, "the policy's library stays in policy/lib, because it has changes of yours in %s; "+
			"docs/policy.md says how to move to %s\n", strings.Join(edited, ", "), library)
	}
	if len(replace)+len(remove) == 0 {
		fmt.Fprintln(e.stderr, "schema.cue and what else is catalogd's is up to date")
	}
	return nil
}

// outdated returns the files of the layout with policy/lib: those that are as they were written, and those of its
// library that were changed since.
func (c *initCmd) outdated(files map[string][]byte) (unchanged, edited []string, err error) {
	for _, name := range slices.Sorted(maps.Keys(flat)) {
		data, err := os.ReadFile(c.path(name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, nil, err
		}
		sum := sha256.Sum256(data)
		switch {
		case hex.EncodeToString(sum[:]) == flat[name]:
			unchanged = append(unchanged, name)
		case strings.HasPrefix(name, "policy/lib/") && !strings.HasSuffix(name, "_test.rego"):
			edited = append(edited, name)
		}
	}
	return unchanged, edited, nil
}

// unshipped returns the files of the library that this version has no more.
func (c *initCmd) unshipped(files map[string][]byte) (gone []string, err error) {
	found, err := filepath.Glob(c.path(library + "*.rego"))
	if err != nil {
		return nil, err
	}
	for _, path := range found {
		name := library + filepath.Base(path)
		data, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		if files[name] == nil && bytes.HasPrefix(data, []byte(vendored)) {
			gone = append(gone, name)
		}
	}
	return gone, nil
}

// flat are the digests of the files of the layout in which the policy's library was in policy/lib, with its tests, and
// connect.rego and check.rego had rules that are in the library now. Only what is unchanged is moved.
var flat = map[string]string{
	"policy/adopt_test.rego":        "109e9591f4d3fef82cab50ff82b27ca5aa8d5f62104a2106fd14c4b40d16c117",
	"policy/call_test.rego":         "c96b7277ca2caf97539c4c732b48fe367b053b6f1983428e18e28068ef4d9c43",
	"policy/check.rego":             "58890e9891b7711581e0517b64e95c906bae9f95f85ccd98cfb9db90d55fa722",
	"policy/check_test.rego":        "6cab3baa16e882010101c05491b463029c3c027e3e09f86fd498f4c4e3229e17",
	"policy/connect.rego":           "3ae3c983efa4df8fb863a7a057f46fae979e1ea6e052796a385ef3640b22fdae",
	"policy/connect_test.rego":      "e6c338aa1424f41cc867c3638b04d127e3351b72d4c88c05ac6a6a169ae218b7",
	"policy/discover_test.rego":     "5fe3cce5bcb4ef3188feecad3fafd14ddc6ed6861b80596942613e0f5328e006",
	"policy/forward_test.rego":      "156d61807febb043d78e0c08ae30c68d3a6206975105a8b69d3e854d4e1f98e5",
	"policy/lib/access.rego":        "d3e61f6aedc9024e16406ce2a9b8240b38090bcc951d1d8212f228f7086fdb9d",
	"policy/lib/approval.rego":      "a0e2548298bdcd0810a96b024c9e550be2217f682b5b540273241c683481909d",
	"policy/lib/approval_test.rego": "f33cf311c3f2a564ed8c9a8a15a646600641effb684f2267e41768348ca4ae99",
	"policy/lib/command.rego":       "5176ee5eab79a9d05b6dc52f26f855c19b62f677b422d12a2f3aeb77553d14f0",
	"policy/lib/command_test.rego":  "93448972209a505678b9de5011f2192182b70736f6f4d15cfbf344cbda13fbf9",
	"policy/lib/entries.rego":       "dffc221552d99ba0fed445caece840d8f6a135843de5555b3ad71151b0b50609",
	"policy/lib/forward.rego":       "ac92edaaf9b4044e30aad21e72580b7feb00a24810d388bb9c7615d34aa403e0",
	"policy/lib/path.rego":          "84c8e6b7f69b17cd6c42977f108348c7e61eb8bda9d0a52cf2110290cb36848e",
	"policy/lib/path_test.rego":     "e9c9952e67c5a9ebdfd818a7e18143c3b44fea07521e65c65704c412d373bd3f",
	"policy/lib/pattern.rego":       "2255c08603cb0d547c6e08219b82c078d5a15324ea773bcf5408a1aed80d4127",
	"policy/lib/pointer.rego":       "e3d80f9d0e53c4b7c5f5724b3622e5c3fca17c1669fe290f30f152852db1c839",
	"policy/lib/pointer_test.rego":  "b98c0183001e973baf1d3b8e43969e010afba1f917cfdf0429a623fd736439e3",
	"policy/lib/url.rego":           "ea34dc4e995e63a345ab60181b69bb37418d41f5350515e1887cabc782782a7f",
	"policy/lib/url_test.rego":      "ee7e76db565c1da4de79a4876f526f2e21bae97281897c3946cb1decefc38596",
	"policy/lib/wellformed.rego":    "2d765bb185afef89964d54ec9fcabee8af53569980f8057f4ba5f94ec9ff2ef9",
	"policy/list_test.rego":         "108a5a0a5c325821550afa7b53aa8dd2f640ee11da398781d0352a1343f74c6e",
	"policy/release_test.rego":      "db5220047b98d21100e2aebd5152eb4abb241769a2b55319bfa79d3f86cc8d1d",
	"policy/result_test.rego":       "91cc231b0126c955a1767362fe692d860cc0c7f753670456566d183b5f6bb6f5",
}
