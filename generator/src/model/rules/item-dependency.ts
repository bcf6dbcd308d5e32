import { quote, type Diagnostic } from "../../diagnostic.js";
import { nameOfDependency, ruleOfController } from "../build/resolved-project.js";

/** Finds items that wait for what has no items, or that would wait twice. */
export const checkItemDependency = ruleOfController(({ spec: { document, dependents } }) =>
  [...dependents].flatMap(([name, { itemsDependOn = [], dependsOn = [], bulk }]) => {
    const path = ["spec", "dependents", name, "itemsDependOn"];
    const names = dependsOn.map(nameOfDependency);
    const twice = names.findIndex((each, index) => names.indexOf(each) < index);
    if (twice !== -1) {
      const place = document.valueAt(["spec", "dependents", name, "dependsOn", twice]);
      const message = `${quote(names[twice]!)} is listed twice in the dependsOn of ${quote(name)}`;
      return [{ severity: "error", rule: "item-dependency", message, ...place, hint: "remove one of them" }];
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
          `${quote(name)} has no items that could wait: it is no bulk dependent`,
          undefined,
          "state bulk: true, or dependsOn instead of itemsDependOn",
        ),
      ];
    return itemsDependOn.flatMap((other, index) => {
      const needed = dependents.get(other);
      if (needed !== undefined && needed.bulk === undefined)
        return [
          fail(
            `${quote(other)} has no items to wait for: it is no bulk dependent`,
            index,
            `state it in dependsOn, or bulk: true for ${quote(other)}`,
          ),
        ];
      if (!names.includes(other)) return [];
      return [
        fail(
          `${quote(name)} waits for all of ${quote(other)} already, as dependsOn says`,
          index,
          "remove it from one of the two",
        ),
      ];
    });
  }),
);
