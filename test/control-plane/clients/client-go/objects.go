package main

import (
	"encoding/json"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/restmapper"
)

var widgets = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}

func configMap(name string, data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"from": "client-go"}}, Data: data}
}

// typedClient creates, changes and deletes built-in objects, and meets the errors that controllers tell apart.
func typedClient(c *clients) {
	maps := c.typed.CoreV1().ConfigMaps(c.namespace)
	created, err := maps.Create(c.ctx, configMap("a", map[string]string{"k": "v"}), metav1.CreateOptions{})
	check(err)
	_, exists := maps.Create(c.ctx, configMap("a", nil), metav1.CreateOptions{})
	_, invalid := maps.Create(c.ctx, configMap("Bad_Name", nil), metav1.CreateOptions{})
	changed := created.DeepCopy()
	changed.Data["k"] = "w"
	updated, err := maps.Update(c.ctx, changed, metav1.UpdateOptions{})
	check(err)
	_, conflict := maps.Update(c.ctx, changed, metav1.UpdateOptions{})
	deployment, err := c.typed.AppsV1().Deployments(c.namespace).Create(c.ctx, webDeployment(), metav1.CreateOptions{})
	check(err)
	patch := []byte(`{"spec":{"template":{"spec":{"containers":[{"name":"web","env":[{"name":"A","value":"1"}]}]}}}}`)
	patched, err := c.typed.AppsV1().Deployments(c.namespace).Patch(c.ctx, "web", types.StrategicMergePatchType, patch, metav1.PatchOptions{})
	check(err)
	patched.Status.ObservedGeneration = patched.Generation
	status, err := c.typed.AppsV1().Deployments(c.namespace).UpdateStatus(c.ctx, patched, metav1.UpdateOptions{})
	check(err)
	scale, err := c.typed.AppsV1().Deployments(c.namespace).GetScale(c.ctx, "web", metav1.GetOptions{})
	check(err)
	check(c.typed.AppsV1().Deployments(c.namespace).Delete(c.ctx, "web", metav1.DeleteOptions{}))
	wrongUID := types.UID("11111111-1111-4111-8111-111111111111")
	precondition := maps.Delete(c.ctx, "a", metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &wrongUID}})
	check(maps.Delete(c.ctx, "a", metav1.DeleteOptions{}))
	_, missing := maps.Get(c.ctx, "a", metav1.GetOptions{})
	report("typed", map[string]any{
		"alreadyExists":      errors.IsAlreadyExists(exists),
		"invalid":            errors.IsInvalid(invalid),
		"conflict":           errors.IsConflict(conflict),
		"precondition":       errors.IsConflict(precondition),
		"notFound":           errors.IsNotFound(missing),
		"data":               updated.Data,
		"replicas":           deployment.Spec.Replicas,
		"image":              patched.Spec.Template.Spec.Containers[0].Image,
		"env":                patched.Spec.Template.Spec.Containers[0].Env,
		"generation":         status.Generation,
		"observedGeneration": status.Status.ObservedGeneration,
		"scale":              scale.Spec.Replicas,
	})
}

func webDeployment() *appsv1.Deployment {
	labels := map[string]string{"app": "web"}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "nginx:1.29"}}},
			},
		},
	}
}

// pages lists in pieces.
func pages(c *clients) {
	maps := c.typed.CoreV1().ConfigMaps(c.namespace)
	for _, name := range []string{"c", "a", "b"} {
		_, err := maps.Create(c.ctx, configMap(name, nil), metav1.CreateOptions{})
		check(err)
	}
	first, err := maps.List(c.ctx, metav1.ListOptions{Limit: 2})
	check(err)
	second, err := maps.List(c.ctx, metav1.ListOptions{Limit: 2, Continue: first.Continue})
	check(err)
	check(maps.DeleteCollection(c.ctx, metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "from=client-go"}))
	rest, err := maps.List(c.ctx, metav1.ListOptions{LabelSelector: "from=client-go"})
	check(err)
	report("pages", map[string]any{
		"first":     namesOf(first.Items),
		"remaining": first.RemainingItemCount,
		"second":    namesOf(second.Items),
		"same":      first.ResourceVersion == second.ResourceVersion,
		"rest":      len(rest.Items),
	})
}

func namesOf(items []corev1.ConfigMap) []string {
	names := []string{}
	for _, item := range items {
		names = append(names, item.Name)
	}
	return names
}

// dynamicClient writes a custom resource, its status and its finalizers.
func dynamicClient(c *clients) {
	client := c.dynamic.Resource(widgets).Namespace(c.namespace)
	created, err := client.Create(c.ctx, widget("a", map[string]any{"color": "red"}), metav1.CreateOptions{})
	check(err)
	_, invalid := client.Create(c.ctx, widget("b", map[string]any{"size": int64(0)}), metav1.CreateOptions{})
	check(unstructured.SetNestedField(created.Object, true, "status", "ready"))
	withStatus, err := client.UpdateStatus(c.ctx, created, metav1.UpdateOptions{})
	check(err)
	withStatus.SetFinalizers([]string{"example.com/hold"})
	held, err := client.Update(c.ctx, withStatus, metav1.UpdateOptions{})
	check(err)
	check(client.Delete(c.ctx, "a", metav1.DeleteOptions{}))
	terminating, err := client.Get(c.ctx, "a", metav1.GetOptions{})
	check(err)
	release, err := json.Marshal([]map[string]any{{"op": "remove", "path": "/metadata/finalizers"}})
	check(err)
	_, err = client.Patch(c.ctx, "a", types.JSONPatchType, release, metav1.PatchOptions{})
	check(err)
	_, missing := client.Get(c.ctx, "a", metav1.GetOptions{})
	report("dynamic", map[string]any{
		"spec":        created.Object["spec"],
		"status":      withStatus.Object["status"],
		"generation":  held.GetGeneration(),
		"invalid":     errors.IsInvalid(invalid),
		"message":     invalid.Error(),
		"terminating": terminating.GetDeletionTimestamp() != nil,
		"notFound":    errors.IsNotFound(missing),
	})
}

func widget(name string, spec map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1",
		"kind":       "Widget",
		"metadata":   map[string]any{"name": name},
		"spec":       spec,
	}}
}

// discovered finds the resources of kinds, as generic controllers do.
func discovered(c *clients) {
	groups, err := restmapper.GetAPIGroupResources(c.typed.Discovery())
	check(err)
	mapper := restmapper.NewDiscoveryRESTMapper(groups)
	found := map[string]any{}
	for _, kind := range []schema.GroupKind{{Group: "example.com", Kind: "Widget"}, {Group: "example.com", Kind: "Gadget"}, {Group: "apps", Kind: "Deployment"}, {Kind: "Namespace"}} {
		mapping, err := mapper.RESTMapping(kind)
		check(err)
		found[kind.Kind] = mapping.Resource.String() + " " + string(mapping.Scope.Name())
	}
	_, err = mapper.RESTMapping(schema.GroupKind{Group: "example.com", Kind: "Gizmo"})
	found["unknown"] = meta.IsNoMatchError(err)
	version, err := c.typed.Discovery().ServerVersion()
	check(err)
	found["version"] = version.Major + "." + version.Minor
	report("discovery", found)
}
