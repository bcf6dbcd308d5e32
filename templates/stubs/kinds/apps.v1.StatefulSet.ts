import type { __Dependent__Desired, __Resource__Input } from "../../generated/__controller__/types.js";

/** Returns the __Resource__ that a __Primary__ needs. The operator creates it, keeps it as returned, and links it to the __Primary__. */
export const desired: __Dependent__Desired = ({ primary }): __Resource__Input => {
  const name = __objectName__;
  const labels = {
    "app.kubernetes.io/name": "__app__",
    "app.kubernetes.io/instance": primary.metadata.name,
    "app.kubernetes.io/component": "__component__",
  };
  return {
    metadata: { name, labels },
    spec: {
      replicas: 1,
      serviceName: name,
      selector: { matchLabels: labels },
      template: {
        metadata: { labels },
        spec: { containers: [{ name: "main", image: "nginx:1.29" }] },
      },
    },
  };
};
