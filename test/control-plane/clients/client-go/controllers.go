package main

import (
	"context"
	"fmt"
	"sort"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// events collects what an informer tells, one text each.
type events struct {
	mutex sync.Mutex
	texts []string
}

func (e *events) add(text string) {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	e.texts = append(e.texts, text)
}

func (e *events) sorted() []string {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	texts := append([]string{}, e.texts...)
	sort.Strings(texts)
	return texts
}

func (e *events) handler(textOf func(object any) string) cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { e.add("add " + textOf(object)) },
		UpdateFunc: func(_, object any) { e.add("update " + textOf(object)) },
		DeleteFunc: func(object any) { e.add("delete " + textOf(object)) },
	}
}

// informer follows ConfigMaps with a shared informer.
func informer(c *clients) {
	maps := c.typed.CoreV1().ConfigMaps(c.namespace)
	_, err := maps.Create(c.ctx, configMap("before", nil), metav1.CreateOptions{})
	check(err)
	selected := informers.WithTweakListOptions(func(options *metav1.ListOptions) { options.LabelSelector = "from=client-go" })
	factory := informers.NewSharedInformerFactoryWithOptions(c.typed, 0, informers.WithNamespace(c.namespace), selected)
	shared := factory.Core().V1().ConfigMaps()
	seen := &events{}
	_, err = shared.Informer().AddEventHandler(seen.handler(func(object any) string {
		found := object.(*corev1.ConfigMap)
		return found.Name + found.Data["k"]
	}))
	check(err)
	watchListsBefore := c.watchLists.Load()
	ctx, cancel := context.WithCancel(c.ctx)
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	_, err = maps.Create(c.ctx, configMap("after", nil), metav1.CreateOptions{})
	check(err)
	eventually("after is seen", func() bool { return len(seen.sorted()) == 2 })
	_, err = maps.Patch(c.ctx, "after", types.MergePatchType, []byte(`{"data":{"k":"=v"}}`), metav1.PatchOptions{})
	check(err)
	eventually("the change is seen", func() bool { return len(seen.sorted()) == 3 })
	// To lose the label is to be deleted for who selects by it.
	_, err = maps.Patch(c.ctx, "before", types.MergePatchType, []byte(`{"metadata":{"labels":null}}`), metav1.PatchOptions{})
	check(err)
	check(maps.Delete(c.ctx, "after", metav1.DeleteOptions{}))
	eventually("the deletions are seen", func() bool { return len(seen.sorted()) == 5 })
	_, err = shared.Lister().ConfigMaps(c.namespace).Get("after")
	cancel()
	factory.Shutdown()
	report("informer", map[string]any{
		"events":    seen.sorted(),
		"forgotten": errors.IsNotFound(err),
		"watchList": c.watchLists.Load() > watchListsBefore,
	})
}

// dynamicInformer follows custom resources.
func dynamicInformer(c *clients) {
	client := c.dynamic.Resource(widgets).Namespace(c.namespace)
	factory := dynamicinformer.NewFilteredDynamicSharedInformerFactory(c.dynamic, 0, c.namespace, nil)
	seen := &events{}
	_, err := factory.ForResource(widgets).Informer().AddEventHandler(seen.handler(func(object any) string {
		return object.(*unstructured.Unstructured).GetName()
	}))
	check(err)
	ctx, cancel := context.WithCancel(c.ctx)
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	for index := range 20 {
		_, err := client.Create(c.ctx, widget(fmt.Sprintf("w-%02d", index), map[string]any{}), metav1.CreateOptions{})
		check(err)
	}
	eventually("all are seen", func() bool { return len(seen.sorted()) == 20 })
	check(client.DeleteCollection(c.ctx, metav1.DeleteOptions{}, metav1.ListOptions{}))
	eventually("all deletions are seen", func() bool { return len(seen.sorted()) == 40 })
	cancel()
	factory.Shutdown()
	report("dynamicInformer", map[string]any{"first": seen.sorted()[0], "last": seen.sorted()[39]})
}

// apply uses server-side apply through apply configurations.
func apply(c *clients) {
	maps := c.typed.CoreV1().ConfigMaps(c.namespace)
	configured := func(data map[string]string) *applycorev1.ConfigMapApplyConfiguration {
		return applycorev1.ConfigMap("applied", c.namespace).WithData(data)
	}
	_, err := maps.Apply(c.ctx, configured(map[string]string{"a": "1", "b": "1"}), metav1.ApplyOptions{FieldManager: "one"})
	check(err)
	_, conflict := maps.Apply(c.ctx, configured(map[string]string{"a": "2"}), metav1.ApplyOptions{FieldManager: "two"})
	causes := []string{}
	if status, ok := conflict.(errors.APIStatus); ok && status.Status().Details != nil {
		for _, cause := range status.Status().Details.Causes {
			causes = append(causes, string(cause.Type)+" "+cause.Field)
		}
	}
	_, err = maps.Apply(c.ctx, configured(map[string]string{"a": "2"}), metav1.ApplyOptions{FieldManager: "two", Force: true})
	check(err)
	last, err := maps.Apply(c.ctx, configured(map[string]string{"c": "1"}), metav1.ApplyOptions{FieldManager: "one"})
	check(err)
	extracted, err := applycorev1.ExtractConfigMap(last, "two")
	check(err)
	untyped, err := c.dynamic.Resource(widgets).Namespace(c.namespace).Apply(c.ctx, "applied", widget("applied", map[string]any{"tags": []any{"x"}}), metav1.ApplyOptions{FieldManager: "one"})
	check(err)
	report("apply", map[string]any{
		"conflict":  errors.IsConflict(conflict),
		"causes":    causes,
		"data":      last.Data,
		"managers":  len(last.ManagedFields),
		"extracted": extracted.Data,
		"widget":    untyped.Object["spec"],
	})
}

// leaderElection lets two candidates want one Lease.
func leaderElection(c *clients) {
	seen := &events{}
	first, stopFirst := context.WithCancel(c.ctx)
	second, stopSecond := context.WithCancel(c.ctx)
	done := sync.WaitGroup{}
	candidate := func(ctx context.Context, name string) {
		defer done.Done()
		leaderelection.RunOrDie(ctx, leaderelection.LeaderElectionConfig{
			Lock: &resourcelock.LeaseLock{
				LeaseMeta:  metav1.ObjectMeta{Name: "leader", Namespace: c.namespace},
				Client:     c.typed.CoordinationV1(),
				LockConfig: resourcelock.ResourceLockConfig{Identity: name},
			},
			ReleaseOnCancel: true,
			LeaseDuration:   3 * time.Second,
			RenewDeadline:   2 * time.Second,
			RetryPeriod:     100 * time.Millisecond,
			Callbacks: leaderelection.LeaderCallbacks{
				OnStartedLeading: func(context.Context) { seen.add("1 " + name + " leads") },
				OnStoppedLeading: func() { seen.add("2 " + name + " stopped") },
			},
		})
	}
	done.Add(2)
	go candidate(first, "one")
	eventually("one leads", func() bool { return len(seen.sorted()) == 1 })
	go candidate(second, "two")
	time.Sleep(500 * time.Millisecond)
	alone := seen.sorted()
	stopFirst()
	eventually("two leads", func() bool { return len(seen.sorted()) == 3 })
	lease, err := c.typed.CoordinationV1().Leases(c.namespace).Get(c.ctx, "leader", metav1.GetOptions{})
	check(err)
	stopSecond()
	done.Wait()
	report("leaderElection", map[string]any{
		"alone":       alone,
		"all":         seen.sorted(),
		"holder":      lease.Spec.HolderIdentity,
		"transitions": lease.Spec.LeaseTransitions,
	})
}
