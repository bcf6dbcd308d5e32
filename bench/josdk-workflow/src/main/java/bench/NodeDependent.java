package bench;

import io.fabric8.kubernetes.api.model.ConfigMap;
import io.fabric8.kubernetes.api.model.ConfigMapBuilder;
import io.javaoperatorsdk.operator.api.reconciler.Context;
import io.javaoperatorsdk.operator.processing.dependent.kubernetes.CRUDKubernetesDependentResource;
import io.javaoperatorsdk.operator.processing.event.ResourceID;

/** One node of a graph: a config map, ready as soon as it exists. */
final class NodeDependent extends CRUDKubernetesDependentResource<ConfigMap, Graph> {

  private final String node;

  NodeDependent(String node) {
    super(ConfigMap.class, node);
    this.node = node;
  }

  @Override
  protected ConfigMap desired(Graph graph, Context<Graph> context) {
    return new ConfigMapBuilder()
        .withNewMetadata()
        .withName(nameFor(graph))
        .withNamespace(graph.getMetadata().getNamespace())
        .addToLabels("bench", GraphOperator.NAME)
        .endMetadata()
        .addToData("node", node)
        .build();
  }

  /** Finds the object without computing the desired state. */
  @Override
  protected ResourceID targetSecondaryResourceID(Graph graph, Context<Graph> context) {
    return new ResourceID(nameFor(graph), graph.getMetadata().getNamespace());
  }

  private String nameFor(Graph graph) {
    return graph.getMetadata().getName() + "-" + node;
  }
}
