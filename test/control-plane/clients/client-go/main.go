// Command client-go uses an API server the way Go controllers do and prints one line of JSON for each thing it found:
// {"check": "typed", …}. It is given a kubeconfig, a namespace and the content type of built-in objects, which client-go
// sends as protobuf unless told otherwise. Nothing it
// prints differs from run to run.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

type clients struct {
	ctx       context.Context
	namespace string
	typed     kubernetes.Interface
	dynamic   dynamic.Interface
	// How many watches asked for their initial events, as informers do since Kubernetes 1.35.
	watchLists *atomic.Int32
}

func main() {
	if len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "client-go KUBECONFIG NAMESPACE CONTENT-TYPE")
		os.Exit(2)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	c, err := connect(ctx, os.Args[1], os.Args[2], os.Args[3])
	check(err)
	_, err = c.typed.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: c.namespace}}, metav1.CreateOptions{})
	check(err)
	typedClient(c)
	pages(c)
	dynamicClient(c)
	discovered(c)
	informer(c)
	dynamicInformer(c)
	apply(c)
	leaderElection(c)
}

func connect(ctx context.Context, kubeconfig, namespace, contentType string) (*clients, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	config.QPS = -1
	untyped, err := dynamic.NewForConfig(rest.CopyConfig(config))
	if err != nil {
		return nil, err
	}
	config.ContentType = contentType
	watchLists := &atomic.Int32{}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return &counter{next: next, watchLists: watchLists}
	})
	typed, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	return &clients{ctx: ctx, namespace: namespace, typed: typed, dynamic: untyped, watchLists: watchLists}, nil
}

type counter struct {
	next       http.RoundTripper
	watchLists *atomic.Int32
}

func (c *counter) RoundTrip(request *http.Request) (*http.Response, error) {
	if strings.Contains(request.URL.RawQuery, "sendInitialEvents=true") {
		c.watchLists.Add(1)
	}
	return c.next.RoundTrip(request)
}

// report prints what was found under the name of a check.
func report(name string, found map[string]any) {
	found["check"] = name
	line, err := json.Marshal(found)
	check(err)
	fmt.Println(string(line))
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// eventually waits until a condition holds.
func eventually(what string, holds func() bool) {
	for deadline := time.Now().Add(15 * time.Second); !holds(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			check(fmt.Errorf("not within 15 s: %s", what))
		}
	}
}
