import { objectsAt, textAt } from "../../builtin/read-path.js";
import { type FieldError, duplicateError, invalidError, requiredError } from "../../errors/field-error.js";
import { type JsonObject, arrayAt, memberOf, objectAt } from "../../json.js";
import { checkNotNegative, checkQualifiedName } from "../../validation/fields.js";
import { type GoStruct, checkKept, goForm } from "../../validation/immutable-fields.js";
import { checkDriverName } from "../shared/driver-names.js";
import type { Strategy } from "../strategy.js";

export const csiNodeStrategy: Strategy = {
  checksMetadata: ["object"],
  allowsUnconditionalUpdate: false,
  returnsDeletedObject: true,
  validate: checkDriversOfNode,
};

const MAX_NODE_ID = 256;
const NODE_DRIVER: GoStruct = { Name: "", NodeID: "", TopologyKeys: [], Allocatable: null };

/** Validates a CSINode; existing drivers are immutable, except for `allocatable`. */
function checkDriversOfNode(node: JsonObject, old: JsonObject | undefined): FieldError[] {
  const [drivers, before] = [node, old ?? {}].map((one) => objectsAt(one, "spec.drivers")) as [
    JsonObject[],
    JsonObject[],
  ];
  const shown = ({ allocatable: _, ...driver }: JsonObject) => goForm(NODE_DRIVER, driver);
  const kept = before.flatMap((one) =>
    drivers
      .filter((driver) => textAt(driver, "name") === textAt(one, "name"))
      .flatMap((driver) => checkKept("spec.drivers", shown(driver), shown(one))),
  );
  return [...checkNodeDrivers(drivers), ...kept];
}

function checkNodeDrivers(drivers: JsonObject[]): FieldError[] {
  const names = new Set<string>();
  return drivers.flatMap((driver, index) => {
    const path = `spec.drivers[${index}]`;
    const [name, id] = [textAt(driver, "name"), textAt(driver, "nodeID")];
    const isTaken = names.has(name);
    names.add(name);
    return [
      ...checkDriverName(`${path}.name`, name),
      ...(id === "" ? [requiredError(`${path}.nodeID`)] : []),
      ...(Buffer.byteLength(id) > MAX_NODE_ID
        ? [invalidError(`${path}.nodeID`, id, `must be ${MAX_NODE_ID} characters or less`)]
        : []),
      ...checkNotNegative(`${path}.allocatable.count`, memberOf(objectAt(driver, "allocatable"), "count")),
      ...(isTaken ? [duplicateError(`${path}.name`, name)] : []),
      ...checkTopologyKeys(path, (arrayAt(driver, "topologyKeys") ?? []).map(String)),
    ];
  });
}

function checkTopologyKeys(path: string, keys: string[]): FieldError[] {
  return keys.flatMap((key, index) => [
    ...(key === "" ? [requiredError(path)] : []),
    ...(keys.indexOf(key) < index ? [duplicateError(path, key)] : []),
    ...checkQualifiedName(path, key),
  ]);
}
