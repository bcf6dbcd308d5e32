import io.fabric8.kubernetes.api.model.ConfigMap;
import io.fabric8.kubernetes.api.model.ConfigMapBuilder;
import io.fabric8.kubernetes.api.model.GenericKubernetesResource;
import io.fabric8.kubernetes.api.model.NamespaceBuilder;
import io.fabric8.kubernetes.api.model.apps.Deployment;
import io.fabric8.kubernetes.api.model.apps.DeploymentBuilder;
import io.fabric8.kubernetes.client.ConfigBuilder;
import io.fabric8.kubernetes.client.Config;
import io.fabric8.kubernetes.client.KubernetesClient;
import io.fabric8.kubernetes.client.KubernetesClientBuilder;
import io.fabric8.kubernetes.client.KubernetesClientException;
import io.fabric8.kubernetes.client.Watch;
import io.fabric8.kubernetes.client.Watcher;
import io.fabric8.kubernetes.client.WatcherException;
import io.fabric8.kubernetes.client.dsl.base.PatchContext;
import io.fabric8.kubernetes.client.dsl.base.PatchType;
import io.fabric8.kubernetes.client.dsl.base.ResourceDefinitionContext;
import io.fabric8.kubernetes.client.informers.ResourceEventHandler;
import io.fabric8.kubernetes.client.informers.SharedIndexInformer;
import com.fasterxml.jackson.databind.ObjectMapper;

import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.function.BooleanSupplier;

/**
 * Uses an API server the way Java operators do and prints one line of JSON for each thing it found: {"check": "crud", …}. It is
 * given a kubeconfig and a namespace. Nothing it prints differs from run to run.
 */
public final class Main {
  private static final ResourceDefinitionContext WIDGETS =
      new ResourceDefinitionContext.Builder()
          .withGroup("example.com")
          .withVersion("v1")
          .withKind("Widget")
          .withPlural("widgets")
          .withNamespaced(true)
          .build();

  private static final ObjectMapper JSON = new ObjectMapper();

  private final KubernetesClient client;
  private final String namespace;

  private Main(KubernetesClient client, String namespace) {
    this.client = client;
    this.namespace = namespace;
  }

  public static void main(String[] arguments) {
    // The default of 10 s is too short for the first request on a busy machine.
    Config config =
        new ConfigBuilder(Config.fromKubeconfig(Path.of(arguments[0]).toFile()))
            .withRequestTimeout(120_000)
            .withConnectionTimeout(120_000)
            .build();
    try (KubernetesClient client = new KubernetesClientBuilder().withConfig(config).build()) {
      Main main = new Main(client, arguments[1]);
      client
          .resource(new NamespaceBuilder().withNewMetadata().withName(main.namespace).endMetadata().build())
          .create();
      main.crud();
      main.errors();
      main.serverSideApply();
      main.status();
      main.patches();
      main.watch();
      main.informer();
    }
    // The HTTP client leaves threads behind.
    System.exit(0);
  }

  /** Creates, edits, lists and deletes a custom resource of no class of its own. */
  private void crud() {
    var widgets = client.genericKubernetesResources(WIDGETS).inNamespace(namespace);
    GenericKubernetesResource created = widgets.resource(widget("a", Map.of("color", "red"))).create();
    GenericKubernetesResource edited =
        widgets
            .withName("a")
            .edit(
                widget -> {
                  widget.setAdditionalProperty("spec", Map.of("color", "blue", "size", 5));
                  return widget;
                });
    widgets.resource(widget("b", Map.of())).create();
    List<String> names = widgets.list().getItems().stream().map(item -> item.getMetadata().getName()).toList();
    widgets.withName("b").delete();
    boolean isGone = eventually(() -> widgets.withName("b").get() == null);
    report(
        "crud",
        Map.of(
            "created", new TreeMap<>(created.<Map<String, Object>>get("spec")),
            "edited", new TreeMap<>(edited.<Map<String, Object>>get("spec")),
            "generation", edited.getMetadata().getGeneration(),
            "names", names,
            "gone", isGone));
  }

  /** Meets the errors that operators tell apart. */
  private void errors() {
    var maps = client.configMaps().inNamespace(namespace);
    ConfigMap first = maps.resource(configMap("errors", Map.of("k", "v"))).create();
    maps.resource(new ConfigMapBuilder(first).withData(Map.of("k", "w")).build()).update();
    ConfigMap stale = new ConfigMapBuilder(first).withData(Map.of("k", "x")).build();
    report(
        "errors",
        Map.of(
            "exists", codeOf(() -> maps.resource(configMap("errors", Map.of())).create()),
            "conflict", codeOf(() -> maps.resource(stale).lockResourceVersion(first.getMetadata().getResourceVersion()).update()),
            "invalid", codeOf(() -> maps.resource(configMap("Bad_Name", Map.of())).create()),
            "invalidWidget",
                codeOf(
                    () ->
                        client
                            .genericKubernetesResources(WIDGETS)
                            .inNamespace(namespace)
                            .resource(widget("bad", Map.of("size", 0)))
                            .create()),
            "missing", String.valueOf(maps.withName("missing").get())));
  }

  /** Applies as two managers. */
  private void serverSideApply() {
    var maps = client.configMaps().inNamespace(namespace);
    PatchContext one = PatchContext.of(PatchType.SERVER_SIDE_APPLY);
    one.setFieldManager("one");
    PatchContext two = PatchContext.of(PatchType.SERVER_SIDE_APPLY);
    two.setFieldManager("two");
    maps.resource(configMap("applied", Map.of("a", "1", "b", "1"))).patch(one);
    String conflict = codeOf(() -> maps.resource(configMap("applied", Map.of("a", "2"))).patch(two));
    two.setForce(true);
    maps.resource(configMap("applied", Map.of("a", "2"))).patch(two);
    ConfigMap last = maps.resource(configMap("applied", Map.of("c", "1"))).patch(one);
    GenericKubernetesResource widget =
        client
            .genericKubernetesResources(WIDGETS)
            .inNamespace(namespace)
            .resource(widget("applied", Map.of("tags", List.of("x"))))
            .fieldManager("java")
            .serverSideApply();
    report(
        "serverSideApply",
        Map.of(
            "conflict", conflict,
            "data", new TreeMap<>(last.getData()),
            "managers", last.getMetadata().getManagedFields().stream().map(entry -> entry.getManager()).sorted().toList(),
            "widget", new TreeMap<>(widget.<Map<String, Object>>get("spec"))));
  }

  /** Writes the status of a custom resource in each of the ways that the client has. */
  private void status() {
    var widgets = client.genericKubernetesResources(WIDGETS).inNamespace(namespace);
    GenericKubernetesResource widget = widgets.resource(widget("status", Map.of())).create();
    widget.setAdditionalProperty("status", Map.of("ready", false));
    GenericKubernetesResource updated = widgets.resource(widget).updateStatus();
    Object isReadyAtFirst = updated.<Map<String, Object>>get("status").get("ready");
    updated.setAdditionalProperty("status", Map.of("ready", true));
    GenericKubernetesResource patched = widgets.resource(updated).patchStatus();
    GenericKubernetesResource edited =
        widgets
            .withName("status")
            .editStatus(
                item -> {
                  item.setAdditionalProperty("status", Map.of("ready", true, "replicas", 2));
                  return item;
                });
    report(
        "status",
        Map.of(
            "updated", isReadyAtFirst,
            "patched", patched.<Object>get("status"),
            "edited", new TreeMap<>(edited.<Map<String, Object>>get("status")),
            "generation", edited.getMetadata().getGeneration()));
  }

  /** Patches a Deployment in three ways and scales it. */
  private void patches() {
    var deployments = client.apps().deployments().inNamespace(namespace);
    Map<String, String> labels = Map.of("app", "web");
    Deployment web =
        new DeploymentBuilder()
            .withNewMetadata().withName("web").endMetadata()
            .withNewSpec()
            .withNewSelector().withMatchLabels(labels).endSelector()
            .withNewTemplate()
            .withNewMetadata().withLabels(labels).endMetadata()
            .withNewSpec().addNewContainer().withName("web").withImage("nginx:1.29").endContainer().endSpec()
            .endTemplate()
            .endSpec()
            .build();
    deployments.resource(web).create();
    var one = deployments.withName("web");
    one.patch(PatchContext.of(PatchType.STRATEGIC_MERGE), "{\"spec\":{\"template\":{\"spec\":{\"containers\":[{\"name\":\"side\",\"image\":\"busybox:1\"}]}}}}");
    one.patch(PatchContext.of(PatchType.JSON_MERGE), "{\"metadata\":{\"annotations\":{\"a\":\"b\"}}}");
    one.patch(PatchContext.of(PatchType.JSON), "[{\"op\":\"replace\",\"path\":\"/spec/paused\",\"value\":true}]");
    one.scale(3);
    Deployment found = one.get();
    report(
        "patches",
        Map.of(
            "containers", found.getSpec().getTemplate().getSpec().getContainers().stream().map(container -> container.getName()).toList(),
            "annotations", found.getMetadata().getAnnotations(),
            "paused", found.getSpec().getPaused(),
            "replicas", found.getSpec().getReplicas()));
  }

  /** Watches ConfigMaps by label. */
  private void watch() {
    var maps = client.configMaps().inNamespace(namespace);
    List<String> events = new CopyOnWriteArrayList<>();
    Watcher<ConfigMap> watcher =
        new Watcher<>() {
          @Override
          public void eventReceived(Action action, ConfigMap map) {
            events.add(action + " " + map.getMetadata().getName());
          }

          @Override
          public void onClose(WatcherException cause) {
            events.add("CLOSED " + cause);
          }
        };
    try (Watch open = maps.withLabel("watch", "me").watch(watcher)) {
      ConfigMap watched = new ConfigMapBuilder(configMap("watched", Map.of())).editMetadata().addToLabels("watch", "me").endMetadata().build();
      maps.resource(watched).create();
      maps.withName("watched").edit(map -> new ConfigMapBuilder(map).addToData("k", "v").build());
      maps.withName("watched").delete();
      eventually(() -> events.size() == 3);
      report("watch", Map.of("events", List.copyOf(events)));
    }
  }

  /** Follows custom resources with an informer. */
  private void informer() {
    var widgets = client.genericKubernetesResources(WIDGETS).inNamespace(namespace);
    widgets.delete();
    eventually(() -> widgets.list().getItems().isEmpty());
    widgets.resource(widget("before", Map.of())).create();
    List<String> events = new CopyOnWriteArrayList<>();
    ResourceEventHandler<GenericKubernetesResource> handler =
        new ResourceEventHandler<>() {
          @Override
          public void onAdd(GenericKubernetesResource widget) {
            events.add("add " + widget.getMetadata().getName());
          }

          @Override
          public void onUpdate(GenericKubernetesResource old, GenericKubernetesResource widget) {
            events.add("update " + widget.getMetadata().getName());
          }

          @Override
          public void onDelete(GenericKubernetesResource widget, boolean isStateUnknown) {
            events.add("delete " + widget.getMetadata().getName());
          }
        };
    try (SharedIndexInformer<GenericKubernetesResource> informer = widgets.inform(handler)) {
      boolean hasSynced = eventually(informer::hasSynced);
      widgets.resource(widget("after", Map.of())).create();
      widgets
          .withName("after")
          .edit(
              widget -> {
                widget.setAdditionalProperty("spec", Map.of("size", 7));
                return widget;
              });
      widgets.withName("before").delete();
      eventually(() -> events.size() == 4);
      List<String> store = informer.getStore().list().stream().map(widget -> widget.getMetadata().getName()).toList();
      report("informer", Map.of("synced", hasSynced, "events", List.copyOf(events), "store", store));
    }
  }

  private static GenericKubernetesResource widget(String name, Map<String, Object> spec) {
    Map<String, Object> widget = new LinkedHashMap<>();
    widget.put("apiVersion", "example.com/v1");
    widget.put("kind", "Widget");
    widget.put("metadata", Map.of("name", name));
    widget.put("spec", spec);
    return JSON.convertValue(widget, GenericKubernetesResource.class);
  }

  private static ConfigMap configMap(String name, Map<String, String> data) {
    return new ConfigMapBuilder().withNewMetadata().withName(name).endMetadata().withData(data).build();
  }

  private static String codeOf(Runnable call) {
    try {
      call.run();
      return "none";
    } catch (KubernetesClientException failure) {
      return failure.getCode() + " " + failure.getStatus().getReason();
    }
  }

  private static boolean eventually(BooleanSupplier holds) {
    for (long deadline = System.nanoTime() + 15_000_000_000L; System.nanoTime() < deadline; ) {
      if (holds.getAsBoolean()) return true;
      try {
        Thread.sleep(10);
      } catch (InterruptedException interruption) {
        throw new IllegalStateException(interruption);
      }
    }
    return false;
  }

  private static void report(String check, Map<String, Object> found) {
    Map<String, Object> line = new LinkedHashMap<>();
    line.put("check", check);
    line.putAll(new TreeMap<>(found));
    try {
      System.out.println(JSON.writeValueAsString(line));
    } catch (com.fasterxml.jackson.core.JsonProcessingException failure) {
      throw new IllegalStateException(failure);
    }
  }
}
