package registry_test

import (
	"slices"
	"testing"

	"github.com/catalogd/catalogd/registry"
)

func TestNearest(t *testing.T) {
	t.Parallel()
	names := []string{"convert_temperature", "get_time", "get_weather", "git_log", "listBranches", "slugify", "weather_alerts"}
	for name, want := range map[string][]string{
		"weather":       {"get_weather", "weather_alerts"},
		"fetch_weather": {"get_weather"},
		"getWeather":    {"get_weather"},
		"get-wether":    {"get_weather"},
		"Slugfy":        {"slugify"},
		"log":           {"git_log"},
		"branch":        nil,
		"list_branch":   {"listBranches"},
		"branches":      {"listBranches"},
		"temperature":   {"convert_temperature"},
		"play_music":    nil,
		"":              nil,
	} {
		if got := registry.Nearest(name, names); !slices.Equal(got, want) {
			t.Errorf("%q: got %q, want %q", name, got, want)
		}
	}
}
