import { resourceNameOf } from "../builtin/resource-name.js";
import { type Authorizer, accessDenied, checkEscalation } from "../identity/authorizer.js";
import type { JsonObject } from "../json.js";
import { settled } from "../pending-conversion.js";
import type { Admission, AdmissionPlugin, AdmittedWrite } from "./admission.js";
import { type PutStatus, chargeQuotas } from "./limits/resource-quotas.js";
import { type EnabledPlugins, pluginsOf } from "./plugins.js";
import type { MutatingPolicies, PolicyChanges } from "./policy/mutating-policies.js";
import { checkParamRights } from "./policy/param-rights.js";
import type { ValidatingPolicies } from "./policy/validating-policies.js";
import type { WebhookAdmission } from "./webhook-admission.js";

const RBAC = "rbac.authorization.k8s.io";

/** The policies of both kinds. */
export interface Policies {
  readonly mutating: MutatingPolicies;
  readonly validating: ValidatingPolicies;
}

/** Who is asked beside those who always are. */
export interface AdmissionMembers extends EnabledPlugins {
  readonly policies: Policies;
  readonly webhooks: WebhookAdmission;
  /** Stores a status that the server itself writes. */
  readonly putStatus: PutStatus;
}

/**
 * Admits writes. Mutating plugins, policies and webhooks run before the object is validated; privilege escalation checks, validating plugins,
 * policies, webhooks and quotas run after it.
 */
export class AdmissionChain implements Admission {
  readonly #authorizer: Authorizer;
  readonly #plugins: ReadonlyMap<string, ResourcePlugins>;
  readonly #policies: Policies;
  readonly #webhooks: WebhookAdmission;
  readonly #putStatus: PutStatus;

  constructor(authorizer: Authorizer, { policies, webhooks, putStatus, ...enabled }: AdmissionMembers) {
    this.#authorizer = authorizer;
    this.#plugins = byResource(pluginsOf(authorizer, enabled));
    this.#policies = policies;
    this.#webhooks = webhooks;
    this.#putStatus = putStatus;
  }

  mutate(write: AdmittedWrite): Promise<JsonObject> | undefined {
    const { object } = write;
    const completed = this.#complete(write);
    if (completed === undefined || object === undefined) return this.#mutateCompleted(write);
    return completed.then(async () => (await this.#mutateCompleted(write)) ?? object);
  }

  // In place; a promise where a plugin waits for something.
  #complete(write: AdmittedWrite): Promise<void> | undefined {
    return mutateFrom(0, this.#pluginsOf(write).mutating, write);
  }

  #pluginsOf({ context }: AdmittedWrite): ResourcePlugins {
    return this.#plugins.get(resourceNameOf(context.resource.type)) ?? NO_PLUGINS;
  }

  #mutateCompleted(write: AdmittedWrite): Promise<JsonObject> | undefined {
    const { object } = write;
    const isSeen = object !== undefined && write.context.resource.type.strategy.creates !== "review";
    const changes = isSeen ? this.#policies.mutating.changesOf(write) : undefined;
    if (object === undefined || changes === undefined) return this.#webhooks.mutate(write);
    return this.#mutateByPolicies(changes, write, object);
  }

  // Policies come before webhooks, and see once more what those have changed.
  async #mutateByPolicies(changes: PolicyChanges, write: AdmittedWrite, given: JsonObject): Promise<JsonObject> {
    const object = await settled(() => changes.first(write, given));
    const again = (changed: JsonObject): JsonObject | Promise<JsonObject> => {
      const completed = this.#complete({ ...write, object: changed });
      if (completed === undefined) return settled(() => changes.again(write, changed));
      return completed.then(() => settled(() => changes.again(write, changed)));
    };
    return (await this.#webhooks.mutate({ ...write, object }, again)) ?? again(object);
  }

  validate(write: AdmittedWrite): Promise<void> | undefined {
    const { context, name, object, oldObject } = write;
    const { type } = context.resource;
    if (write.isUpsert === true) this.#checkMayCreate(write);
    checkParamRights(this.#authorizer, write);
    if (type.group === RBAC && object !== undefined) {
      const { user, namespace = "" } = context;
      const previous = oldObject === undefined ? {} : { oldObject };
      checkEscalation(this.#authorizer, {
        user,
        plural: type.plural,
        namespace,
        name,
        object,
        ...previous,
      });
    }
    for (const validate of this.#pluginsOf(write).validating) validate(write);
    // Webhooks are asked about reviews, policies are not.
    if (type.strategy.creates === "review") return this.#askAndCharge(write);
    const { warnings } = context;
    const told = warnings.length;
    const evaluated = settled(() => {
      warnings.length = told;
      this.#policies.validating.validate(write);
    });
    if (evaluated !== undefined) return evaluated.then(() => this.#askAndCharge(write));
    return this.#askAndCharge(write);
  }

  #checkMayCreate({ context, name }: AdmittedWrite): void {
    const { group, plural } = context.resource.type;
    const { namespace = "", user } = context;
    const attributes = { verb: "create", group, resource: plural, subresource: "", namespace, name };
    if (!this.#authorizer.decide(user, attributes).allowed) throw accessDenied(user, attributes);
  }

  #askAndCharge(write: AdmittedWrite): Promise<void> | undefined {
    const asked = this.#webhooks.validate(write);
    // What is refused is not counted, so quotas come last.
    if (asked !== undefined) return asked.then(() => chargeQuotas(write, this.#putStatus));
    chargeQuotas(write, this.#putStatus);
    return undefined;
  }
}

/** What the plugins do for the writes of one resource, in their order. */
interface ResourcePlugins {
  readonly mutating: readonly NonNullable<AdmissionPlugin["mutate"]>[];
  readonly validating: readonly NonNullable<AdmissionPlugin["validate"]>[];
}

const NO_PLUGINS: ResourcePlugins = { mutating: [], validating: [] };

function byResource(plugins: readonly AdmissionPlugin[]): Map<string, ResourcePlugins> {
  const resources = new Set(plugins.flatMap((plugin) => plugin.resources));
  return new Map(
    [...resources].map((resource) => {
      const own = plugins.filter((plugin) => plugin.resources.includes(resource));
      const mutating = own.flatMap(({ mutate }) => mutate ?? []);
      return [resource, { mutating, validating: own.flatMap(({ validate }) => validate ?? []) }];
    }),
  );
}

function mutateFrom(
  start: number,
  mutating: ResourcePlugins["mutating"],
  write: AdmittedWrite,
): Promise<void> | undefined {
  for (let index = start; index < mutating.length; index++) {
    const waits = mutating[index]?.(write);
    if (waits !== undefined) return waits.then(() => mutateFrom(index + 1, mutating, write));
  }
  return undefined;
}
