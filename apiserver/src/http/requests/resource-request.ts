import type { Admission } from "../../admission/admission.js";
import type { ServedType } from "../../builtin/served-type.js";
import { compareVersions } from "../../builtin/versions.js";
import { fieldManagerOf, type WriteOptions } from "../../decode/options/write-options.js";
import type { UserInfo } from "../../identity/user.js";
import { stringAt } from "../../json.js";
import type { Registry } from "../../registry/registry.js";
import type { ServedResource } from "../../registry/served-resource.js";
import type { WriteContext } from "../../write/write-context.js";
import { negotiate } from "../answer/negotiate.js";
import type { RenderContext } from "../answer/render.js";
import type { ApiRequest } from "../message.js";

/** A request for a resource that is served. */
export interface ResourceRequest {
  registry: Registry;
  /** What is asked about writes before they are stored. */
  admission: Admission;
  request: ApiRequest;
  /** Who it is made for. */
  user: UserInfo;
  resource: ServedResource;
  namespace: string | undefined;
  /** "" on a collection. */
  name: string;
  /** "" on the main endpoint. */
  subresource: string;
  /** Collects what becomes `Warning` headers. */
  warnings: string[];
}

/** Returns what the pipelines need to know about a write. */
export function writeContextOf(on: ResourceRequest, options: WriteOptions): WriteContext {
  const { registry, admission, resource, namespace, warnings, request, user } = on;
  return {
    registry,
    resource,
    namespace,
    manager: fieldManagerOf(options, request.headers["user-agent"]),
    user,
    options: options.given,
    isDryRun: options.isDryRun,
    admission,
    fieldValidation: options.fieldValidation,
    warnings,
    auditAnnotations: request.auditAnnotations,
  };
}

/** Returns how the answer is to be rendered; fails when the client accepts nothing that there is. */
export function renderContextOf(on: ResourceRequest, { isList = false, isWatch = false } = {}): RenderContext {
  const { request, resource, warnings } = on;
  const { type } = resource;
  const representation = negotiate(
    {
      accept: request.headers.accept,
      userAgent: request.headers["user-agent"],
      pretty: request.query.get("pretty"),
    },
    { isCustom: type.custom !== undefined, isList, isWatch, goType: goTypeOf(type, isList) },
  );
  return { resource, representation, query: request.query, warnings };
}

// Go's packages are called after the beginning of the group.
function goTypeOf({ custom, group, kind, listKind }: ServedType, isList: boolean): string {
  if (custom !== undefined) return `unstructured.Unstructured${isList ? "List" : ""}`;
  return `${group.split(".")[0] || "core"}.${isList ? listKind : kind}`;
}

const DEPRECATED_OF_CORE: Record<string, string> = {
  componentstatuses: "v1 ComponentStatus is deprecated in v1.19+",
  endpoints: "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice",
};

/** Returns the warning that a deprecated kind, or version of a custom resource, causes on every request. */
export function deprecationWarningOf(
  { type }: ServedResource,
  subresource: string,
  registry: Registry,
): string | undefined {
  // None of them has a subresource.
  if (type.group === "") return subresource === "" ? DEPRECATED_OF_CORE[type.plural] : undefined;
  const version = type.custom?.version;
  if (version === undefined || version["deprecated"] !== true) return undefined;
  const own = stringAt(version, "deprecationWarning");
  if (own !== undefined) return own;
  const better = registry.types
    .filter((other) => other.group === type.group && other.plural === type.plural)
    .filter((other) => other.custom?.version["deprecated"] !== true && compareVersions(other.version, type.version) < 0)
    .sort((a, b) => compareVersions(a.version, b.version))[0];
  const advice = better === undefined ? "" : `; use ${better.group}/${better.version} ${better.kind}`;
  return `${type.group}/${type.version} ${type.kind} is deprecated${advice}`;
}
