import type { __Dependent__Arguments, __Resource__Input } from "../../generated/__controller__/types.js";

/** Returns the __Resource__ that a __Primary__ needs. The operator creates it, keeps it as returned, and links it to the __Primary__. */
export function desired({ primary }: __Dependent__Arguments): __Resource__Input {
  return {
    metadata: { name: __objectName__ },
    spec: {
      template: {
        spec: {
          restartPolicy: "Never",
          containers: [{ name: "main", image: "busybox:1.37", command: ["true"] }],
        },
      },
    },
  };
}
