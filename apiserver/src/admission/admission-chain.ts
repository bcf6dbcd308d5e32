import { resourceNameOf } from "../builtin/resource-name.js";
import type { ServedType } from "../builtin/served-type.js";
import { type Authorizer, accessDenied } from "../identity/authorizer.js";
import type { JsonObject } from "../json.js";
import { settled } from "../pending-conversion.js";
import type { Registry, ServedResource } from "../registry/registry.js";
import type { ResourceStore } from "../storage/store.js";
import type { Admission, AdmissionPlugin, AdmittedWrite } from "./admission.js";
import { type PutStatus, chargeQuotas } from "./limits/resource-quotas.js";
import { type EnabledPlugins, pluginsOf } from "./plugins.js";
import type { MutatingPolicies, PolicyChanges } from "./policy/mutating-policies.js";
import type { ValidatingPolicies } from "./policy/validating-policies.js";
import type { WebhookAdmission } from "./webhook-admission.js";

/** The admission policies, mutating and validating. */
export interface Policies {
  readonly mutating: MutatingPolicies;
  readonly validating: ValidatingPolicies;
}

/** Dependencies of an admission chain, and the optional plugins to enable. */
export interface AdmissionMembers extends EnabledPlugins {
  readonly registry: Registry;
  readonly policies: Policies;
  readonly webhooks: WebhookAdmission;
  /** Writes the status of an object on behalf of the server. */
  readonly putStatus: PutStatus;
}

/**
 * Admission plugins that are configured by objects, with the resources of these objects. A plugin is skipped unless at least one object of each
 * resource exists, as in the dispatchers of kube-apiserver.
 */
const CONFIGURED_BY = {
  mutatingPolicies: ["mutatingadmissionpolicies", "mutatingadmissionpolicybindings"],
  mutatingWebhooks: ["mutatingwebhookconfigurations"],
  validatingPolicies: ["validatingadmissionpolicies", "validatingadmissionpolicybindings"],
  validatingWebhooks: ["validatingwebhookconfigurations"],
  quotas: ["resourcequotas"],
} as const;

type ConfiguredPlugin = keyof typeof CONFIGURED_BY;

/**
 * Admits writes. Mutating plugins, policies, and webhooks run before the object is validated; validating plugins, policies, webhooks, and quotas run
 * after it.
 */
export class AdmissionChain implements Admission {
  readonly #authorizer: Authorizer;
  readonly #plugins: readonly AdmissionPlugin[];
  readonly #pluginsByType = new WeakMap<ServedType, ResourcePlugins>();
  readonly #configurations: ReadonlyMap<ConfiguredPlugin, readonly ResourceStore[]>;
  readonly #policies: Policies;
  readonly #webhooks: WebhookAdmission;
  readonly #putStatus: PutStatus;

  constructor(authorizer: Authorizer, { registry, policies, webhooks, putStatus, ...enabled }: AdmissionMembers) {
    this.#authorizer = authorizer;
    this.#plugins = pluginsOf(authorizer, enabled);
    this.#configurations = configurationsIn(registry);
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

  // Runs the mutating plugins, in place. Returns a promise if a plugin waits.
  #complete(write: AdmittedWrite): Promise<void> | undefined {
    return mutateFrom(0, this.#pluginsOf(write).mutating, write);
  }

  #pluginsOf({ context }: AdmittedWrite): ResourcePlugins {
    const { type } = context.resource;
    let plugins = this.#pluginsByType.get(type);
    if (plugins === undefined) this.#pluginsByType.set(type, (plugins = selectPlugins(this.#plugins, type)));
    return plugins;
  }

  #isConfigured(plugin: ConfiguredPlugin): boolean {
    return this.#configurations.get(plugin)?.every(({ size }) => size > 0) === true;
  }

  #mutateCompleted(write: AdmittedWrite): Promise<JsonObject> | undefined {
    const { object } = write;
    const isSeen = object !== undefined && write.context.resource.type.strategy.creates !== "review";
    const changes =
      isSeen && this.#isConfigured("mutatingPolicies") ? this.#policies.mutating.changesOf(write) : undefined;
    if (object === undefined || changes === undefined) return this.#askMutating(write);
    return this.#mutateByPolicies(changes, write, object);
  }

  #askMutating(...asked: Parameters<WebhookAdmission["mutate"]>): Promise<JsonObject> | undefined {
    return this.#isConfigured("mutatingWebhooks") ? this.#webhooks.mutate(...asked) : undefined;
  }

  // Mutating policies run before mutating webhooks, and are reinvoked for objects that a webhook changed.
  async #mutateByPolicies(changes: PolicyChanges, write: AdmittedWrite, given: JsonObject): Promise<JsonObject> {
    const object = await settled(() => changes.first(write, given));
    const again = (changed: JsonObject): JsonObject | Promise<JsonObject> => {
      const completed = this.#complete({ ...write, object: changed });
      if (completed === undefined) return settled(() => changes.again(write, changed));
      return completed.then(() => settled(() => changes.again(write, changed)));
    };
    return (await this.#askMutating({ ...write, object }, again)) ?? again(object);
  }

  validate(write: AdmittedWrite): Promise<void> | undefined {
    const { warnings, resource } = write.context;
    if (write.isUpsert === true) this.#checkMayCreate(write);
    for (const validate of this.#pluginsOf(write).validating) validate(write);
    // Webhooks intercept reviews, policies do not.
    if (resource.type.strategy.creates === "review" || !this.#isConfigured("validatingPolicies"))
      return this.#askAndCharge(write);
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
    const asked = this.#isConfigured("validatingWebhooks") ? this.#webhooks.validate(write) : undefined;
    // Quotas come last, so that a write that a webhook denies is not charged.
    if (asked !== undefined) return asked.then(() => this.#charge(write));
    this.#charge(write);
    return undefined;
  }

  #charge(write: AdmittedWrite): void {
    if (this.#isConfigured("quotas")) chargeQuotas(write, this.#putStatus);
  }
}

/** The plugins for the writes of one resource, in the order in which they run. */
interface ResourcePlugins {
  readonly mutating: readonly NonNullable<AdmissionPlugin["mutate"]>[];
  readonly validating: readonly NonNullable<AdmissionPlugin["validate"]>[];
}

function selectPlugins(plugins: readonly AdmissionPlugin[], type: ServedType): ResourcePlugins {
  const resource = resourceNameOf(type);
  const own = plugins.filter(({ resources }) => resources.includes(resource));
  return {
    mutating: own.flatMap(({ mutate }) => mutate ?? []),
    validating: own.flatMap(({ validate }) => validate ?? []),
  };
}

function configurationsIn(registry: Registry): Map<ConfiguredPlugin, ResourceStore[]> {
  const storeOf = (plural: string): ResourceStore => {
    const group = plural === "resourcequotas" ? "" : "admissionregistration.k8s.io";
    return (registry.find({ group, version: "v1", plural }) as ServedResource).store;
  };
  const plugins = Object.entries(CONFIGURED_BY) as [ConfiguredPlugin, readonly string[]][];
  return new Map(plugins.map(([plugin, plurals]) => [plugin, plurals.map(storeOf)]));
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
