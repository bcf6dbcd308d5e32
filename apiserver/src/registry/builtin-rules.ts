import { decodeBuiltin } from "../builtin/decode.js";
import { builtinSchemas } from "../builtin/schemas.js";
import { type ServedType, hasBuiltinSchema } from "../builtin/served-type.js";
import { quote } from "../errors/go-format.js";
import { badRequest, internalError, invalid, plainError } from "../errors/status-error.js";
import { type JsonObject, arrayAt, objectAt, stringAt } from "../json.js";
import { kindRefOf, metadataOf } from "../object/object-meta.js";
import { mergeTypeOfBuiltin } from "../ssa/merge-type.js";
import {
  checkAddresses,
  checkAsked,
  doubleNodePort,
  healthPortProblem,
} from "../strategies/core/service-allocation.js";
import { defaultBuiltin } from "../strategies/defaults.js";
import { strategyOf } from "../strategies/table.js";
import type { Allocator } from "./allocator.js";
import type { TypeRules } from "./registry.js";

/** Returns the rules of a built-in kind, which delegate to its strategy. */
export function builtinRules(type: ServedType, allocatorOf: () => Allocator): TypeRules {
  const strategy = strategyOf(type);
  const allocates = strategy.allocatesAddresses === true;
  // Kubernetes allocates the cluster IPs of a Service before it validates the other fields.
  const allocation = (service: JsonObject, live: JsonObject | undefined, isDryRun: boolean) => ({
    ...allocatorOf(),
    checkAsked(spec: JsonObject) {
      const old = objectAt(live, "spec");
      const asked = { ranges: allocatorOf().ranges, old, isDryRun };
      const ofAddresses = checkAddresses(spec, old);
      const errors = ofAddresses.length > 0 ? ofAddresses : checkAsked(spec, asked);
      if (errors.length > 0) throw invalid(kindRefOf(type, stringAt(metadataOf(service), "name") ?? ""), errors);
      const double = old === undefined ? undefined : doubleNodePort(spec);
      if (double !== undefined) throw plainError(`duplicate nodePort: ${double}`);
      const ofHealth = healthPortProblem(spec, asked);
      if (ofHealth !== undefined) throw internalError(ofHealth);
    },
  });
  return {
    mergeType: mergeTypeOfBuiltin(builtinSchemas(), hasBuiltinSchema(type) ? type.schemaName : ""),
    decode(object) {
      const { unknownFields, error } = decodeBuiltin(type, object);
      if (error === undefined) return unknownFields;
      throw badRequest(`${type.kind} in version ${quote(type.version)} cannot be handled as a ${type.kind}: ${error}`);
    },
    fillDefaults(object, live) {
      // Normalization drops empty lists, but an empty managedFields list resets field management.
      const forgetsManagers = arrayAt(objectAt(object, "metadata"), "managedFields")?.length === 0;
      defaultBuiltin(type, object, live === undefined ? {} : { old: live });
      if (forgetsManagers) metadataOf(object)["managedFields"] = [];
    },
    finish(object, live, { subresource, isDryRun }) {
      strategy.dropFields?.(object, live);
      if (live !== undefined) {
        strategy.prepareForUpdate?.(object, live, subresource);
        if (allocates && subresource !== "status")
          defaultBuiltin(type, object, { ...allocation(object, live, isDryRun), old: live });
        return undefined;
      }
      // The status was reset on create, so set the status fields that the type always encodes.
      if (strategy.defaultsOfNew !== true && type.strategy.resetOnMain.length === 0) return undefined;
      const allocator = allocates ? allocation(object, undefined, isDryRun) : {};
      defaultBuiltin(type, object, { ...allocator, uid: stringAt(metadataOf(object), "uid") ?? "" });
      return strategy.prepareForCreate?.(object) ?? undefined;
    },
    reread: (object) => strategy.reread?.(object),
    validate: (object, live) => strategy.validate?.(object, live) ?? [],
    validatePart: (object, live, subresource) => strategy.validateSubresource?.(object, live, subresource),
    validateStatus: (object, live) => strategy.validateStatus?.(object, live) ?? [],
    warnings(object, live, subresource) {
      const warnings = subresource === "status" ? strategy.statusWarnings?.(object) : strategy.warnings?.(object, live);
      return [...(warnings ?? [])];
    },
  };
}
