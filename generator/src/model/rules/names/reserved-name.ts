import { quote, type Diagnostic } from "../../../diagnostic.js";
import type { Place, YamlPath } from "../../../input/yaml/yaml-document.js";
import { isDevice, isReservedController, reservedWords } from "../../reserved-words.js";
import { filtersOf, functionsOf, ruleOfController } from "../../build/resolved-project.js";
import { conditionsOf } from "../../build/stated-condition.js";

/** What every object has, so that `secondary.toString` would be there without a dependent. */
const OBJECT_MEMBERS: ReadonlySet<string> = new Set(Object.getOwnPropertyNames(Object.prototype));

/** Finds names that cannot be used for files, properties or functions. */
export const checkReservedName = ruleOfController((controller) => {
  const { spec, dependents, eventSources } = controller;
  const functions = [
    ...filtersOf(controller).map(({ filter, path }) => ({ name: filter.function, owner: path })),
    ...dependents.map(({ spec: { matcher }, path }) => ({ name: matcher?.function, owner: [...path, "matcher"] })),
    ...Object.entries(spec.controller.indexes ?? {}).map(([index, each]) => ({
      name: each.function,
      owner: ["spec", "controller", "indexes", index],
    })),
  ].flatMap(({ name, owner }) => (name === undefined ? [] : [{ name, path: [...owner, "function"] }]));
  const conditions = dependents
    .flatMap(conditionsOf)
    .flatMap(({ condition, path }) => (condition.kind === "function" ? [{ name: condition.name, path }] : []));
  return [
    ...(isReservedController(spec.name)
      ? [reserved(spec.document.valueAt(["metadata", "name"]), `controller ${quote(spec.name)}`)]
      : []),
    ...[...dependents, ...eventSources]
      .filter(({ name }) => OBJECT_MEMBERS.has(name) || isDevice(name))
      .map(({ name, path }) => reserved(spec.document.keyAt(path), `${nounOf(path)} ${quote(name)}`)),
    ...[...conditions, ...functions, ...eventSources.flatMap(functionsOf)]
      .filter(({ name }) => reservedWords.has(name))
      .map(({ name, path }) => reserved(spec.document.valueAt(path), `function ${quote(name)}`)),
  ];
});

/** Returns what a path of a spec leads to. */
function nounOf([, list]: YamlPath): string {
  return list === "eventSources" ? "event source" : "dependent";
}

function reserved(place: Place, what: string): Diagnostic {
  return {
    severity: "error",
    rule: "reserved-name",
    message: `the name of ${what} is reserved in TypeScript, in file systems or in src/`,
    ...place,
    hint: "choose another name",
  };
}
