import { quote, type Diagnostic } from "../../../diagnostic.js";
import { nameOfDependency, ruleOfController } from "../../build/resolved-project.js";

/** Finds items that wait for what has no items, or that would wait twice. */
export const checkItemDependency = ruleOfController(({ spec: { document, dependents } }) =>
  [...dependents].flatMap(([name, { itemsDependOn = [], dependsOn = [], bulk }]) => {
    const path = ["spec", "dependents", name, "itemsDependOn"];
    const names = dependsOn.map(nameOfDependency);
    const twice = names.findIndex((each, index) => names.indexOf(each) < index);
    if (twice !== -1) {
      const place = document.valueAt(["spec", "dependents", name, "dependsOn", twice]);
      const message = `dependsOn of dependent ${quote(name)} lists ${quote(names[twice]!)} twice`;
      return [{ severity: "error", rule: "item-dependency", message, ...place, hint: "remove one of the two entries" }];
    }
    const fail = (message: string, index: number | undefined, hint: string): Diagnostic => ({
      severity: "error",
      rule: "item-dependency",
      message,
      ...(index === undefined ? document.keyAt(path) : document.valueAt([...path, index])),
      hint,
    });
    if (itemsDependOn.length > 0 && bulk === undefined)
      return [
        fail(
          `dependent ${quote(name)} is no bulk dependent, so it has no items that could wait`,
          undefined,
          "state bulk: true, or dependsOn instead of itemsDependOn",
        ),
      ];
    return itemsDependOn.flatMap((other, index) => {
      const needed = dependents.get(other);
      if (needed !== undefined && needed.bulk === undefined)
        return [
          fail(
            `dependent ${quote(other)} is no bulk dependent, so it has no items to wait for`,
            index,
            `list ${quote(other)} in dependsOn instead, or state bulk: true for it`,
          ),
        ];
      if (!names.includes(other)) return [];
      return [
        fail(
          `dependent ${quote(name)} waits for all items of ${quote(other)} already, as dependsOn lists it`,
          index,
          "remove it from one of the two",
        ),
      ];
    });
  }),
);
