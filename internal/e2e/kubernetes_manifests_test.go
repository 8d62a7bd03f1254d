package e2e

import (
	"fmt"
	"strings"
	"testing"
)

// Minimal YAML of objects that tests apply.

// deployment returns the YAML of a Deployment whose pods, on one node, have the label app=NAME.
func deployment(name, node string, replicas int) string {
	return fmt.Sprintf(`
apiVersion: apps/v1
kind: Deployment
metadata: {name: %[1]s}
spec:
  replicas: %[3]d
  selector: {matchLabels: {app: %[1]s}}
  template: %[2]s
`, name, podTemplate(name, node), replicas)
}

// podTemplate returns the template of pods on one node with the label app=NAME.
func podTemplate(name, node string) string {
	return fmt.Sprintf(`{metadata: {labels: {app: %s}}, spec: {nodeSelector: {kubernetes.io/hostname: %s}, terminationGracePeriodSeconds: 0, containers: [{name: main, image: none}]}}`, name, node)
}

// controlledBy returns the metadata of objects that o controls.
func controlledBy(o object) string {
	return fmt.Sprintf("ownerReferences: [{apiVersion: %s, kind: %s, name: %s, uid: %s, controller: true}]", o.at("apiVersion"), o.at("kind"), o.name(), o.at("metadata", "uid"))
}

// nobody is the metadata of an object without a controller.
const nobody = "ownerReferences: []"

// controller returns the YAML of a controller of apps/v1, for pods with the label app=APP.
func controller(kind, name, metadata, app, node, spec string) string {
	return fmt.Sprintf(`{apiVersion: apps/v1, kind: %s, metadata: {name: %s, %s}, spec: {selector: {matchLabels: {app: %s}}, template: %s, %s}}`,
		kind, name, metadata, app, podTemplate(app, node), spec)
}

// jobSpec returns the spec of a Job whose pods have the label app=NAME.
func jobSpec(name, node string) string {
	return "{template: " + strings.Replace(podTemplate(name, node), "spec: {", "spec: {restartPolicy: Never, ", 1) + "}"
}

// barePod returns the YAML of a pod with the label app=NAME.
func barePod(name, metadata, node string) string {
	return strings.Replace(podTemplate(name, node), "{metadata: {", "{apiVersion: v1, kind: Pod, metadata: {name: "+name+", "+metadata+", ", 1)
}

// custom creates an object of another operator's kind.
func (c *cluster) custom(t *testing.T, ns, apiVersion, kind, name, metadata string) object {
	t.Helper()
	c.define(t, apiVersion, kind, strings.ToLower(kind)+"s")
	return c.apply(t, ns, fmt.Sprintf("{apiVersion: %s, kind: %s, metadata: {name: %s, %s}}", apiVersion, kind, name, metadata))[0]
}
