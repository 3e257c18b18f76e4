package docs

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/catalogd/catalogd/test/internal/harness"
)

// containerCommand returns the arguments that the image runs catalogd with, for another place.
func containerCommand(t *testing.T, catalog, addr, tokens string) []string {
	t.Helper()
	image := harness.ReadFile(t, "deploy/Dockerfile")
	found := regexp.MustCompile(`(?m)^CMD (\[.*\])$`).FindStringSubmatch(image)
	var args []string
	if len(found) != 2 || json.Unmarshal([]byte(found[1]), &args) != nil {
		t.Fatal("deploy/Dockerfile has no CMD")
	}
	for old, here := range map[string]string{"/catalog": catalog, "0.0.0.0:8420": addr, "/etc/catalogd/tokens": tokens} {
		i := slices.Index(args, old)
		if i < 0 {
			t.Fatalf("the image's command %q does not name %s", args, old)
		}
		args[i] = here
	}
	return args
}

// TestDeployCommands: this version knows every flag that the image, the unit and the manifests use, and without tokens
// none of them would listen on an address that others reach.
func TestDeployCommands(t *testing.T) {
	usePrograms(t)
	deployment := manifests(t)["Deployment"]
	unit := regexp.MustCompile(`(?m)^ExecStart=\S+ (.*)$`).FindStringSubmatch(harness.ReadFile(t, "deploy/catalogd.service"))
	probe := regexp.MustCompile(`(?m)^HEALTHCHECK .* CMD \["/bin/catalogd", (.*)\]$`).FindStringSubmatch(harness.ReadFile(t, "deploy/Dockerfile"))
	if unit == nil || probe == nil {
		t.Fatal("no ExecStart, or no HEALTHCHECK")
	}
	for name, args := range map[string][]string{
		"image":        containerCommand(t, "/catalog", "0.0.0.0:8420", "/etc/catalogd/tokens"),
		"unit":         strings.Fields(unit[1]),
		"health check": strings.Split(strings.ReplaceAll(probe[1], `"`, ""), ", "),
		"deployment":   deployment.Spec.Template.Spec.Containers[0].Args,
	} {
		if out, err := exec.Command("catalogd", append(args, "--help")...).CombinedOutput(); err != nil {
			t.Errorf("%s: catalogd %q: %v\n%s", name, args, err, out)
		}
		if line := strings.Join(args, " "); args[0] == "serve" && !regexp.MustCompile(`--tokens[ =]/etc/catalogd/tokens`).MatchString(line) {
			t.Errorf("%s serves without tokens: %s", name, line)
		}
	}
	out, err := exec.Command("catalogd", "serve", t.TempDir(), "--addr", "0.0.0.0:8420").CombinedOutput()
	if err == nil || !strings.Contains(string(out), "--tokens FILE") {
		t.Errorf("serve --addr 0.0.0.0:8420 without tokens: %v\n%s", err, out)
	}
}

// manifest has those fields of a Kubernetes object that are checked here. `make deploy-check` decodes all of them.
type manifest struct {
	Kind string
	Spec struct {
		PolicyTypes []string `yaml:"policyTypes"`
		Template    struct {
			Spec struct {
				Mounts          bool `yaml:"automountServiceAccountToken"`
				SecurityContext struct {
					NonRoot bool `yaml:"runAsNonRoot"`
				} `yaml:"securityContext"`
				Containers []struct {
					Args           []string
					ReadinessProbe struct {
						HTTPGet struct{ Path string } `yaml:"httpGet"`
					} `yaml:"readinessProbe"`
					LivenessProbe struct {
						HTTPGet struct{ Path string } `yaml:"httpGet"`
					} `yaml:"livenessProbe"`
					SecurityContext struct {
						ReadOnly     bool  `yaml:"readOnlyRootFilesystem"`
						Escalation   *bool `yaml:"allowPrivilegeEscalation"`
						Capabilities struct{ Drop []string }
					} `yaml:"securityContext"`
				}
			}
		}
	}
}

func manifests(t *testing.T) map[string]manifest {
	t.Helper()
	all := map[string]manifest{}
	for _, text := range strings.Split(harness.ReadFile(t, "deploy/kubernetes/catalogd.yaml"), "\n---\n") {
		var m manifest
		if err := yaml.Unmarshal([]byte(text), &m); err != nil {
			t.Fatal(err)
		}
		all[m.Kind] = m
	}
	return all
}

// TestDeployKubernetes holds the manifests to what docs/install.md says of them.
func TestDeployKubernetes(t *testing.T) {
	all := manifests(t)
	pod := all["Deployment"].Spec.Template.Spec
	if len(pod.Containers) != 1 {
		t.Fatalf("%d containers", len(pod.Containers))
	}
	c := pod.Containers[0]
	if !pod.SecurityContext.NonRoot || pod.Mounts || !c.SecurityContext.ReadOnly || c.SecurityContext.Escalation == nil ||
		*c.SecurityContext.Escalation || !slices.Equal(c.SecurityContext.Capabilities.Drop, []string{"ALL"}) {
		t.Errorf("the pod may more than it needs: %+v", pod)
	}
	if c.ReadinessProbe.HTTPGet.Path != "/readyz" || c.LivenessProbe.HTTPGet.Path != "/healthz" {
		t.Errorf("probes: %+v", c)
	}
	if !slices.Equal(all["NetworkPolicy"].Spec.PolicyTypes, []string{"Ingress", "Egress"}) {
		t.Errorf("network policy: %+v", all["NetworkPolicy"].Spec)
	}
}

// TestDeployUnit has systemd read the unit, and rate it: 0 is best, 10 is worst.
func TestDeployUnit(t *testing.T) {
	if _, err := exec.LookPath("systemd-analyze"); err != nil {
		t.Skip("systemd-analyze is not installed")
	}
	usePrograms(t)
	program, err := exec.LookPath("catalogd")
	if err != nil {
		t.Fatal(err)
	}
	text := harness.ReadFile(t, "deploy/catalogd.service")
	// Neither the program nor its user is on this machine.
	text = strings.NewReplacer("/usr/local/bin/catalogd", program, "User=catalogd", "User=root", "Group=catalogd", "Group=root").Replace(text)
	unit := filepath.Join(t.TempDir(), "catalogd.service")
	if err := os.WriteFile(unit, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	if complaints := output(t, "systemd-analyze", "verify", unit); complaints != "" {
		t.Errorf("systemd-analyze verify says:\n%s", complaints)
	}
	output(t, "systemd-analyze", "security", "--offline=true", "--threshold=20", unit)
}
