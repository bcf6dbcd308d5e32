import { findWrongRequirements, isLabelKey } from "@gen-operator/schema";
import { type Diagnostic, didYouMean, quote } from "../diagnostic.js";
import type { InformerModel, ProjectModel, ResourceModel } from "../model/project-model.js";
import { type ResolvedController, checkOfController } from "../model/resolved-project.js";
import { fieldAt } from "../model/schema.js";
import type { YamlPath } from "../read/yaml/yaml-document.js";
import { ALL_EVENTS, CACHE_PATH, FIELD_SELECTOR, LABEL_SELECTOR, MAPPING_SCOPE } from "./rules.js";

export { isLabelKey };

/** Reports label selectors that the API server rejects. */
export const checkLabelSelector = checkOfController((controller) => {
  const { spec, dependents, eventSources } = controller;
  return [
    ...checkLabelTerms(spec.controller.labelSelector, ["spec", "controller", "labelSelector"], controller),
    ...[...dependents, ...eventSources].flatMap((member) =>
      checkLabelTerms(member.spec.labelSelector, [...member.path, "labelSelector"], controller),
    ),
  ];
});

function checkLabelTerms(selector = "", path: YamlPath, { spec: { document } }: ResolvedController): Diagnostic[] {
  return findWrongRequirements(selector).map(({ text, offset }): Diagnostic => {
    return {
      ...LABEL_SELECTOR.violation,
      message: `invalid label selector requirement ${quote(text.trim())}`,
      ...document.valueAt(path),
      position: document.characterAt(path, offset + (text.length - text.trimStart().length)),
      hint: "use requirements such as app=web, tier!=cache, zone in (a, b), zone notin (c), app or !app",
    };
  });
}

/**
 * Reports field selectors that the API server rejects: syntax errors, and fields that the kind cannot be selected by.
 * https://kubernetes.io/docs/concepts/overview/working-with-objects/field-selectors/
 */
export const checkFieldSelector = checkOfController((controller) => {
  const { spec, primary, dependents, eventSources } = controller;
  return [
    ...checkFieldTerms(spec.controller.fieldSelector, ["spec", "controller"], { controller, resource: primary }),
    ...[...dependents, ...eventSources].flatMap((member) =>
      checkFieldTerms(member.spec.fieldSelector, member.path, { controller, resource: member.resource }),
    ),
  ];
});

interface Selected {
  readonly controller: ResolvedController;
  readonly resource: ResourceModel | undefined;
}

function checkFieldTerms(
  selector: string | undefined,
  owner: YamlPath,
  { controller, resource }: Selected,
): Diagnostic[] {
  const { document } = controller.spec;
  const path = [...owner, "fieldSelector"];
  return termsOf(selector ?? "").flatMap(({ text, offset }): Diagnostic[] => {
    const fail = (message: string, hint: string): Diagnostic[] => [
      {
        ...FIELD_SELECTOR.violation,
        message,
        ...document.valueAt(path),
        position: document.characterAt(path, offset),
        hint,
      },
    ];
    const term = TERM.exec(text);
    if (term === null)
      return fail(
        `invalid field selector term ${quote(text)}`,
        "use terms such as metadata.name=main, status.phase!=Running",
      );
    const field = term[1] ?? "";
    // The selectable fields of a kind without a schema are unknown.
    if (resource === undefined || resource.isUntyped === true || resource.selectableFields.includes(field)) return [];
    return fail(
      `the API server cannot select objects of kind ${resource.kind} by ${quote(field)}`,
      hintFor(field, resource),
    );
  });
}

// The first operator ends the field name. In the value, a backslash escapes a comma, an equals sign, or a backslash.
const TERM = /^([^=!,\\]+?)(?:==?|!=)((?:[^=,\\]|\\[=,\\])*)$/;

function hintFor(field: string, { selectableFields, isCustom }: ResourceModel): string {
  const listed = `use one of ${selectableFields.join(", ")}`;
  const advice = isCustom ? ", or add the field to selectableFields of the version in its CRD" : "";
  return didYouMean(field, selectableFields)?.hint ?? listed + advice;
}

/** Splits a selector at unescaped commas. Empty terms are skipped, as the API server does. */
function termsOf(selector: string): { text: string; offset: number }[] {
  return [...selector.matchAll(/(?:[^,\\]|\\[^])+/g)].map(({ 0: text, index }) => ({ text, offset: index }));
}

/**
 * Reports mappings that can never map an object to a primary.
 *
 * An owner reference refers to the namespace of the object that has it, and a cluster-scoped object has none.
 */
export const checkMappingScope = checkOfController(({ spec: { document }, primary, eventSources }) =>
  eventSources.flatMap(({ name, spec, path, resource }): Diagnostic[] => {
    if (primary?.scope !== "Namespaced" || resource?.scope !== "Cluster") return [];
    const { mapping = "ownerReference", primaryToSecondary } = spec;
    if (spec.mapping === undefined && primaryToSecondary !== undefined) return [];
    const scopes = `${resource.kind} is cluster-scoped, but the primary ${primary.kind} is namespaced`;
    const fail = (message: string, field: string, hint: string): Diagnostic[] => [
      { ...MAPPING_SCOPE.violation, message, ...document.valueAt([...path, field]), hint },
    ];
    if (mapping === "ownerReference")
      return fail(
        `owner references cannot map event source ${quote(name)} to primaries: ${scopes}`,
        spec.mapping === undefined ? "resource" : "mapping",
        "set mapping to a label, annotation or function, or primaryToSecondary to a function",
      );
    const keys = mapping.label ?? mapping.annotation;
    if (keys === undefined || keys.namespace !== undefined) return [];
    return fail(
      `a name alone cannot map event source ${quote(name)} to primaries: ${scopes}`,
      "mapping",
      "set namespace in the mapping to the key that holds the namespace of the primary",
    );
  }),
);

/**
 * Reports workflows, and settings of workflows, in controllers with `onAllEvents`.
 *
 * Such a reconciler is also called after the primary is deleted, when dependents would have no owner. That it has no cleanup function is enforced by
 * its type.
 */
export const checkAllEvents = checkOfController(
  ({ spec: { document, controller, workflow }, dependents }): Diagnostic[] => {
    if (controller.onAllEvents !== true) return [];
    const fail = (message: string, path: string[], hint: string): Diagnostic => ({
      ...ALL_EVENTS.violation,
      message,
      ...document.valueAt(["spec", ...path]),
      hint,
    });
    return [
      ...(dependents.length === 0
        ? []
        : [
            fail(
              "a controller with onAllEvents: true cannot have dependents",
              ["controller", "onAllEvents"],
              "remove onAllEvents, or watch the objects as eventSources and write them in the reconciler",
            ),
          ]),
      ...(workflow.invocation === "explicit"
        ? [
            fail(
              "a controller with onAllEvents: true has no workflow to invoke",
              ["workflow", "invocation"],
              "remove onAllEvents or invocation",
            ),
          ]
        : []),
    ];
  },
);

/** Reports cache paths that are not in the schema of the kind. */
export const checkCachePath = checkOfController(({ spec: { document }, eventSources }) =>
  eventSources.flatMap(({ spec: { cache }, path, resource }): Diagnostic[] => {
    if (typeof cache !== "object" || resource === undefined) return [];
    return cache.paths.flatMap((text, index): Diagnostic[] => {
      const found = fieldAt(resource, text.split("."));
      if (found.kind !== "unknown") return [];
      const before = text.split(".").slice(0, found.depth);
      const candidates = found.known.map((name) => [...before, name].join("."));
      const listed = candidates.length > 0 ? { hint: `known fields: ${candidates.join(", ")}` } : {};
      const what =
        found.reason === "whole"
          ? `invalid path ${quote(text)}: lists and maps can only be cached as a whole`
          : `${resource.kind} has no field ${quote(text)}`;
      return [
        {
          ...CACHE_PATH.violation,
          message: what,
          ...document.valueAt([...path, "cache", "paths", index]),
          ...(found.reason === "whole"
            ? { hint: `use ${quote(before.join("."))}` }
            : (didYouMean(text, candidates) ?? listed)),
        },
      ];
    });
  }),
);

/** Returns a note for each event source that caches all objects of a built-in kind in full, which often dominates the memory use of an operator. */
export function wideSourceNotes({ controllers }: Pick<ProjectModel, "controllers">): string[] {
  return controllers.flatMap(({ name, eventSources }) =>
    eventSources
      .filter((source): source is InformerModel => source.kind === "informer" && isWide(source))
      .map(({ name: source, resource: { kind } }) => {
        const narrowed =
          "set labelSelector, fieldSelector or cache; run gen-operator suggest caches to see what your code reads";
        return `event source ${quote(source)} of controller ${quote(name)} caches every ${kind} in full: ${narrowed}`;
      }),
  );
}

// Most clusters have few objects of a custom kind.
function isWide({ resource, labelSelector, fieldSelector, cache, maxCachedObjects }: InformerModel): boolean {
  const isNarrow = labelSelector !== undefined || fieldSelector !== undefined || maxCachedObjects !== undefined;
  return !resource.isCustom && !isNarrow && cache.kind === "full";
}
