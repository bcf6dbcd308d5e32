import { BodySyntaxError } from "../decode/body-syntax-error.js";
import { NumberRangeError } from "../decode/check-limits.js";
import { parseYaml } from "../decode/parse-body.js";
import { badRequest, notFound, uidOfMissingObject } from "../errors/status-error.js";
import { clone, isObject, objectAt, stringAt, type JsonObject } from "../json.js";
import { apiVersionOf, resourceRefOf } from "../object/object-key.js";
import { checkNameOfUrl, checkNamespace } from "./check-place.js";
import { tellProblems } from "./decode-object.js";
import { trackApply } from "./managed-fields.js";
import { updateObject } from "./update.js";
import type { WriteContext, WriteResult } from "./write-context.js";

/** A server-side apply. */
export interface ApplyRequest {
  name: string;
  subresource: string;
  body: Buffer;
  force: boolean;
}

/** Applies a configuration to an object, which is created when there is none. */
export async function applyObject(context: WriteContext, request: ApplyRequest): Promise<WriteResult> {
  const { name, subresource, force } = request;
  const { config, checkDuplicates } = parseConfig(request.body);
  checkConfig(context, config);
  const track = (live: JsonObject | undefined, applied = config): { object: JsonObject; isTracked: boolean } => {
    const object = trackApply(context, { live, config: applied, subresource, force });
    // Conflicts come first.
    checkDuplicates(context);
    const given = stringAt(objectAt(object, "metadata"), "name") ?? "";
    checkNameOfUrl(given, name);
    return { object, isTracked: true };
  };
  return updateObject(context, {
    name,
    subresource,
    isPut: false,
    change: (live) => track(live),
    create() {
      const ref = resourceRefOf(context.resource.type, name);
      if (subresource !== "") throw notFound(ref);
      const uid = stringAt(objectAt(config, "metadata"), "uid") ?? "";
      if (uid !== "") throw uidOfMissingObject(ref, uid);
      // A create writes into its object, and may be tried again.
      return track(undefined, clone(config));
    },
  });
}

/** Parses the body of an apply; what is set in it twice is told, or refused, by a function of its own. */
export function parseConfig(body: Buffer): { config: JsonObject; checkDuplicates: (context: WriteContext) => void } {
  const { value, duplicates, duplicateErrors } = parsedOrThrow(body);
  const config = value ?? {};
  if (!isObject(config)) {
    const goType = Array.isArray(config) ? "array" : typeof config;
    throw badRequest(
      "error decoding YAML: error unmarshaling JSON: while decoding JSON: " +
        `json: cannot unmarshal ${goType} into Go value of type map[string]interface {}`,
    );
  }
  return {
    config,
    checkDuplicates(context) {
      const [error] = tellProblems(context, { asWarnings: duplicates, asErrors: duplicateErrors });
      if (error !== undefined) throw badRequest(`error strict decoding YAML: error converting YAML to JSON: ${error}`);
    },
  };
}

function parsedOrThrow(body: Buffer): ReturnType<typeof parseYaml> {
  try {
    return parseYaml(body);
  } catch (error) {
    if (!(error instanceof BodySyntaxError || error instanceof NumberRangeError)) throw error;
    throw badRequest(`error decoding YAML: error converting YAML to JSON: ${error.message}`);
  }
}

function checkConfig({ resource, namespace }: WriteContext, config: JsonObject): void {
  const apiVersion = stringAt(config, "apiVersion") ?? "";
  const kind = stringAt(config, "kind") ?? "";
  if (apiVersion !== apiVersionOf(resource.type) || kind !== resource.type.kind) {
    const version = apiVersion.includes("/") ? apiVersion : `/${apiVersion}`;
    throw badRequest(`invalid object type: ${version}, Kind=${kind}`);
  }
  checkNamespace(objectAt(config, "metadata"), namespace);
}
