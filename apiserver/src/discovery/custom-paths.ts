// The paths of custom resources as kube-apiserver publishes them, without the descriptions of parameters.
import type { ServedType } from "../builtin/served-type.js";
import type { JsonObject } from "../json.js";

const SCHEMAS = "#/components/schemas/";
const META = "io.k8s.apimachinery.pkg.apis.meta.v1.";
/** The schemas that the paths refer to beside those of the kind. */
export const PATH_SCHEMAS: readonly string[] = ["DeleteOptions", "Patch", "Status"].map((name) => META + name);
/** The schema of the subresource `scale`. */
export const SCALE_SCHEMA = "io.k8s.api.autoscaling.v1.Scale";

const TYPES: Record<string, string> = {
  ...{ allowWatchBookmarks: "boolean", sendInitialEvents: "boolean", watch: "boolean", force: "boolean" },
  ...{ ignoreStoreReadErrorWithClusterBreakingPotential: "boolean", orphanDependents: "boolean" },
  ...{ limit: "integer", timeoutSeconds: "integer", gracePeriodSeconds: "integer" },
};
const OF_LIST = [
  ...["allowWatchBookmarks", "continue", "fieldSelector", "labelSelector", "limit", "pretty", "resourceVersion"],
  ...["resourceVersionMatch", "sendInitialEvents", "shardSelector", "timeoutSeconds", "watch"],
];
const OF_LIST_IN_NAMESPACE = OF_LIST.filter((name) => name !== "pretty");
const OF_WRITE = ["dryRun", "fieldManager", "fieldValidation"];
const OF_DELETE = [
  ...["dryRun", "gracePeriodSeconds", "ignoreStoreReadErrorWithClusterBreakingPotential", "orphanDependents"],
  "propagationPolicy",
];
const PATCHES = ["apply-patch+yaml", "json-patch+json", "merge-patch+json"].map((type) => `application/${type}`);
const DESCRIPTIONS: Record<string, string> = { "200": "OK", "201": "Created", "202": "Accepted" };

interface Operation {
  verb: string;
  action: string;
  description: string;
  parameters?: readonly string[];
  /** The schema of the body, and its content types unless they are JSON and YAML. */
  body?: { schema: string; types?: readonly string[]; isOptional?: true };
  answers: string[];
  schema: string;
}

/** Gives the paths of a custom resource, where its group version is at `root` and its schema has this name. */
export function customPaths(type: ServedType, { root, schema }: { root: string; schema: string }): JsonObject {
  const { kind, plural, namespaced, group, version } = type;
  const scope = namespaced ? "Namespaced" : "";
  const tag = `${camelCase(group)}_${version}`;
  const prefix = `${upperFirst(camelCase(group))}${upperFirst(version)}`;
  const gvk = { group, version, kind };
  const operation = ({ verb, action, description, parameters, body, answers, schema }: Operation, id: string) => ({
    tags: [tag],
    description,
    operationId: verb + prefix + id,
    ...(parameters === undefined ? {} : { parameters: parameters.map(inQuery) }),
    ...(body === undefined ? {} : { requestBody: bodyOf(body) }),
    responses: {
      ...Object.fromEntries(
        answers.map((code) => [code, { description: DESCRIPTIONS[code] ?? "", content: contentOf(schema) }]),
      ),
      "401": { description: "Unauthorized" },
    },
    "x-kubernetes-action": action,
    "x-kubernetes-group-version-kind": gvk,
  });
  const list = { verb: "list", action: "list", description: `list objects of kind ${kind}`, answers: ["200"] };
  const listed = { ...list, schema: `${schema}List` };
  const collection = `${root}/${namespaced ? "namespaces/{namespace}/" : ""}${plural}`;
  const inNamespace = namespaced ? [NAMESPACE] : [];
  const objectParameters = [inPath("name", `name of the ${kind}`), ...inNamespace, inQuery("pretty")];
  const body = { schema };
  const ofObject = (below: string, shown: string): JsonObject => {
    const id = `${scope}${kind}${upperFirst(below)}`;
    const what = `${below === "" ? "" : `${below} of `}the specified ${kind}`;
    const patched = { schema: `${META}Patch`, types: PATCHES };
    const common = { schema: shown, answers: ["200"] };
    const written = { ...common, body: { schema: shown }, answers: ["200", "201"] };
    return {
      get: operation(
        { ...common, verb: "read", action: "get", description: `read ${what}`, parameters: ["resourceVersion"] },
        id,
      ),
      put: operation(
        { ...written, verb: "replace", action: "put", description: `replace ${what}`, parameters: OF_WRITE },
        id,
      ),
      ...(below === "" ? { delete: operation(deletion(kind), id) } : {}),
      patch: operation(
        {
          ...{ ...common, body: patched, verb: "patch", action: "patch", description: `partially update ${what}` },
          parameters: [...OF_WRITE, "force"],
        },
        id,
      ),
      parameters: objectParameters,
    };
  };
  const subresources = type.subresources.filter(({ name }) => name === "status" || name === "scale");
  return {
    ...(namespaced
      ? {
          [`${root}/${plural}`]: {
            get: operation(listed, `${kind}ForAllNamespaces`),
            parameters: OF_LIST.map(inQuery),
          },
        }
      : {}),
    [collection]: {
      get: operation({ ...listed, parameters: OF_LIST_IN_NAMESPACE }, scope + kind),
      post: operation(
        {
          ...{ verb: "create", action: "post", description: `create a ${kind}`, parameters: OF_WRITE, body, schema },
          answers: ["200", "201", "202"],
        },
        scope + kind,
      ),
      delete: operation(
        {
          ...{ verb: "delete", action: "deletecollection", description: `delete collection of ${kind}` },
          ...{ parameters: OF_LIST_IN_NAMESPACE, answers: ["200"], schema: `${META}Status` },
        },
        `Collection${scope}${kind}`,
      ),
      parameters: [...inNamespace, inQuery("pretty")],
    },
    [`${collection}/{name}`]: ofObject("", schema),
    ...Object.fromEntries(
      subresources.map(({ name }) => [
        `${collection}/{name}/${name}`,
        ofObject(name, name === "scale" ? SCALE_SCHEMA : schema),
      ]),
    ),
  };
}

function deletion(kind: string): Operation {
  return {
    ...{ verb: "delete", action: "delete", description: `delete a ${kind}`, parameters: OF_DELETE },
    body: { schema: `${META}DeleteOptions`, isOptional: true },
    answers: ["200", "202"],
    schema: `${META}Status`,
  };
}

function bodyOf({ schema, types, isOptional }: NonNullable<Operation["body"]>): JsonObject {
  return { content: contentOf(schema, types), ...(isOptional === true ? {} : { required: true }) };
}

function contentOf(schema: string, types: readonly string[] = ["application/json", "application/yaml"]): JsonObject {
  return Object.fromEntries(types.map((type) => [type, { schema: { $ref: SCHEMAS + schema } }]));
}

function inQuery(name: string): JsonObject {
  return { name, in: "query", schema: { type: TYPES[name] ?? "string", uniqueItems: true } };
}

function inPath(name: string, description: string): JsonObject {
  return { name, in: "path", description, required: true, schema: { type: "string", uniqueItems: true } };
}

const NAMESPACE = inPath("namespace", "object name and auth scope, such as for teams and projects");

/** `example.com` as `exampleCom`. */
function camelCase(group: string): string {
  return group.replace(/[^A-Za-z0-9]+([A-Za-z0-9])/g, (_, first: string) => first.toUpperCase());
}

function upperFirst(text: string): string {
  return text.slice(0, 1).toUpperCase() + text.slice(1);
}
