package bench;

import io.fabric8.kubernetes.api.model.Namespaced;
import io.fabric8.kubernetes.client.CustomResource;
import io.fabric8.kubernetes.model.annotation.Group;
import io.fabric8.kubernetes.model.annotation.Version;

/** A primary whose dependents form a graph; its spec says nothing about them. */
@Group("bench.example.com")
@Version("v1")
public class Graph extends CustomResource<Graph.Spec, Void> implements Namespaced {

  public static class Spec {
    public Integer round;
  }
}
