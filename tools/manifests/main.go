// Command manifests decodes Kubernetes manifests with the types of the Kubernetes API. A field that a type does not have,
// or a value of another type, is an error. It asks no cluster.
package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"sigs.k8s.io/yaml"
)

// kinds are the objects that we have manifests of.
var kinds = map[string]func() any{
	"apps/v1 Deployment":                 func() any { return new(appsv1.Deployment) },
	"networking.k8s.io/v1 NetworkPolicy": func() any { return new(networkingv1.NetworkPolicy) },
	"v1 PersistentVolumeClaim":           func() any { return new(corev1.PersistentVolumeClaim) },
	"v1 Service":                         func() any { return new(corev1.Service) },
	"v1 ServiceAccount":                  func() any { return new(corev1.ServiceAccount) },
}

func main() {
	var failed error
	for _, name := range os.Args[1:] {
		data, err := os.ReadFile(name)
		if err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		for i, text := range bytes.Split(data, []byte("\n---\n")) {
			if err := decode(text); err != nil {
				failed = errors.Join(failed, fmt.Errorf("%s: object %d: %w", name, i+1, err))
			}
		}
	}
	if failed != nil {
		fmt.Fprintln(os.Stderr, failed)
		os.Exit(1)
	}
}

func decode(text []byte) error {
	var head struct{ APIVersion, Kind string }
	if err := yaml.Unmarshal(text, &head); err != nil {
		return err
	}
	empty, ok := kinds[head.APIVersion+" "+head.Kind]
	if !ok {
		return fmt.Errorf("the kind %q of %q is not known here", head.Kind, head.APIVersion)
	}
	return yaml.UnmarshalStrict(text, empty())
}
