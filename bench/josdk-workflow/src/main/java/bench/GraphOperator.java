package bench;

import io.fabric8.kubernetes.api.model.ConfigMap;
import io.javaoperatorsdk.operator.Operator;
import io.javaoperatorsdk.operator.api.config.informer.InformerEventSourceConfiguration;
import io.javaoperatorsdk.operator.api.reconciler.Context;
import io.javaoperatorsdk.operator.api.reconciler.ControllerConfiguration;
import io.javaoperatorsdk.operator.api.reconciler.EventSourceContext;
import io.javaoperatorsdk.operator.api.reconciler.Reconciler;
import io.javaoperatorsdk.operator.api.reconciler.UpdateControl;
import io.javaoperatorsdk.operator.api.reconciler.dependent.DependentResource;
import io.javaoperatorsdk.operator.processing.dependent.kubernetes.KubernetesDependentResourceConfigBuilder;
import io.javaoperatorsdk.operator.processing.dependent.workflow.Workflow;
import io.javaoperatorsdk.operator.processing.dependent.workflow.WorkflowBuilder;
import io.javaoperatorsdk.operator.processing.event.source.EventSource;
import io.javaoperatorsdk.operator.processing.event.source.informer.InformerEventSource;
import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * Keeps the graph of config maps of each primary; the argument says which shape. Tells each reconcile by a line on standard
 * output.
 */
@ControllerConfiguration(name = GraphOperator.NAME, fieldManager = GraphOperator.NAME)
public final class GraphOperator implements Reconciler<Graph> {

  static final String NAME = "josdk";
  private static final int CONCURRENCY = 50;

  private final Map<String, NodeDependent> nodes = new LinkedHashMap<>();
  private final Workflow<Graph> workflow;

  private GraphOperator(Map<String, List<String>> shape) {
    var builder = new WorkflowBuilder<Graph>();
    shape.forEach(
        (name, needed) -> {
          var node = new NodeDependent(name);
          // Config maps are not applied by default; the other operator applies everything.
          node.configureWith(
              new KubernetesDependentResourceConfigBuilder<ConfigMap>().withUseSSA(true).build());
          nodes.put(name, node);
          builder
              .addDependentResourceAndConfigure(node)
              .dependsOn(needed.stream().map(nodes::get).toArray(DependentResource[]::new));
        });
    workflow = builder.build();
  }

  public static void main(String[] args) {
    var grace = Duration.ofSeconds(5);
    var operator =
        new Operator(
            overrider ->
                overrider
                    .withConcurrentReconciliationThreads(CONCURRENCY)
                    .withConcurrentWorkflowExecutorThreads(CONCURRENCY)
                    .withReconciliationTerminationTimeout(grace));
    operator.register(new GraphOperator(Shapes.of(args[0])));
    operator.installShutdownHook(grace);
    operator.start();
  }

  /** One informer for all nodes, as all are of one kind. */
  @Override
  public List<EventSource<?, Graph>> prepareEventSources(EventSourceContext<Graph> context) {
    var configuration =
        InformerEventSourceConfiguration.from(ConfigMap.class, Graph.class)
            .withLabelSelector("bench=" + NAME)
            .build();
    var maps = new InformerEventSource<ConfigMap, Graph>(configuration, context);
    nodes.values().forEach(node -> node.setEventSource(maps));
    return List.of(maps);
  }

  @Override
  public UpdateControl<Graph> reconcile(Graph graph, Context<Graph> context) {
    workflow.reconcile(graph, context);
    System.out.println("reconciled " + graph.getMetadata().getName());
    return UpdateControl.noUpdate();
  }
}
