import { StatusError, forbidden, internalError } from "../errors/status-error.js";
import type { Authorizer } from "../identity/authorizer.js";
import {
  type JsonObject,
  type JsonValue,
  arrayAt,
  compareText,
  deepEqual,
  isObject,
  objectAt,
  stringAt,
} from "../json.js";
import { scaleOf, withScale } from "../object/scale.js";
import { applyJsonPatch } from "../patch/json-patch.js";
import { PendingConversion, settled } from "../pending-conversion.js";
import type { Registry, ServedResource } from "../registry/registry.js";
import type { ResourceStore } from "../storage/store.js";
import type { WebhookClient } from "../webhooks/webhook-client.js";
import type { Admission, AdmittedWrite } from "./admission.js";
import { matchWrite } from "./match-write.js";
import { conditionExpressionsOf } from "./policy/expressions.js";
import { type MatchCondition, evaluateConditions, matchConditionsOf } from "./policy/match-conditions.js";
import { reviewOf } from "./review.js";
import { type Verdict, readVerdict } from "./webhook-answer.js";

/** A webhook that matches a write, with the resource in the version that matched. */
interface Called {
  webhook: Webhook;
  seen: ServedResource;
}

/** Mutates the object before webhooks are reinvoked. */
type Between = (object: JsonObject) => JsonObject | Promise<JsonObject>;

/** Calls the webhooks of MutatingWebhookConfigurations and ValidatingWebhookConfigurations. */
export class WebhookAdmission implements Admission {
  readonly #authorizer: Authorizer;
  readonly #client: WebhookClient;
  readonly #mutating: ConfiguredWebhooks;
  readonly #validating: ConfiguredWebhooks;

  constructor(registry: Registry, { authorizer, client }: { authorizer: Authorizer; client: WebhookClient }) {
    this.#authorizer = authorizer;
    this.#client = client;
    this.#mutating = new ConfiguredWebhooks(registry, "mutatingwebhookconfigurations");
    this.#validating = new ConfiguredWebhooks(registry, "validatingwebhookconfigurations");
  }

  /** `between` is called before webhooks are reinvoked and returns the object to pass to them. */
  mutate(write: AdmittedWrite, between: Between = (object) => object): Promise<JsonObject> | undefined {
    const called = this.#mutating.matching(write);
    return called.length === 0 ? undefined : this.#mutateBy(called, write, between);
  }

  validate(write: AdmittedWrite): Promise<void> | undefined {
    const called = this.#validating.matching(write);
    return called.length === 0 ? undefined : this.#validateBy(called, write);
  }

  // Webhooks are called in series, in order of the names of their configurations. Those that allow it are reinvoked if the object changed afterwards.
  async #mutateBy(called: readonly Called[], write: AdmittedWrite, between: Between): Promise<JsonObject> {
    const left = new Map<Called, JsonObject | undefined>();
    let { object } = write;
    for (const one of called) {
      object = await this.#mutateOnce(one, { ...write, ...(object === undefined ? {} : { object }) });
      left.set(one, object);
    }
    if (object !== undefined) object = await between(object);
    for (const one of called) {
      if (one.webhook.reinvocationPolicy === "Never" || object === undefined) continue;
      if (!deepEqual(object, left.get(one))) object = await this.#mutateOnce(one, { ...write, object });
    }
    // A delete has no object to mutate.
    return object ?? {};
  }

  async #mutateOnce({ webhook, seen }: Called, write: AdmittedWrite): Promise<JsonObject | undefined> {
    const { object, context } = write;
    const verdict = await this.#ask({ webhook, seen }, write, { mutates: true });
    context.warnings.push(...(verdict?.warnings ?? []));
    if (verdict?.refusal !== undefined) throw verdict.refusal;
    if (object === undefined || verdict?.patch === undefined) return object;
    const { patch } = verdict;
    return settled(() => patched(object, patch, { write, seen }));
  }

  // Validating webhooks are called in parallel. If several deny the write, the first in order is returned.
  async #validateBy(called: readonly Called[], write: AdmittedWrite): Promise<void> {
    const outcomes = await Promise.allSettled(called.map((one) => this.#ask(one, write, { mutates: false })));
    const verdicts = outcomes.flatMap((outcome) => (outcome.status === "fulfilled" ? [outcome.value] : []));
    write.context.warnings.push(...verdicts.flatMap((verdict) => verdict?.warnings ?? []));
    for (const outcome of outcomes) {
      if (outcome.status === "rejected") throw outcome.reason;
      if (outcome.value?.refusal !== undefined) throw outcome.value.refusal;
    }
  }

  #meetsConditions(
    { matchConditions, failurePolicy }: Webhook,
    { write, seen }: { write: AdmittedWrite; seen: ServedResource },
  ): boolean {
    if (matchConditions.length === 0) return true;
    const expressions = conditionExpressionsOf({ write, seen, authorizer: this.#authorizer });
    const match = evaluateConditions(matchConditions, expressions, failurePolicy);
    if (!("error" in match)) return match.matches;
    const { type } = write.context.resource;
    throw forbidden({ resource: type.plural, group: type.group, name: write.name }, match.error);
  }

  #reviewIfAsked(
    webhook: Webhook,
    { write, seen }: { write: AdmittedWrite; seen: ServedResource },
  ): { uid: string; review: JsonObject } | undefined {
    if (!this.#meetsConditions(webhook, { write, seen })) return undefined;
    const [object, oldObject] = [write.object, write.oldObject].map((one) =>
      one === undefined ? null : shown(one, { write, seen }),
    ) as [JsonObject | null, JsonObject | null];
    return reviewOf({ write, type: seen.type, object, oldObject });
  }

  /** Returns the verdict of a webhook. Undefined if the match conditions are not met, or if the call fails and failurePolicy is Ignore. */
  async #ask(
    { webhook, seen }: Called,
    write: AdmittedWrite,
    { mutates }: { mutates: boolean },
  ): Promise<Verdict | undefined> {
    const reviewed = await settled(() => this.#reviewIfAsked(webhook, { write, seen }));
    if (reviewed === undefined) return undefined;
    const { uid, review } = reviewed;
    try {
      const reply = await this.#client.post(webhook, review).catch((error: Error) => {
        throw new Error(`failed to call webhook: ${error.message}`);
      });
      return readVerdict(reply, { webhook: webhook.name, uid, mutates });
    } catch (error) {
      if (webhook.failurePolicy === "Ignore") return undefined;
      throw internalError(`failed calling webhook "${webhook.name}": ${(error as Error).message}`);
    }
  }
}

/** The webhooks of one kind of configuration, in the order in which they are called. */
class ConfiguredWebhooks {
  readonly #store: ResourceStore;
  #known: { version: number; webhooks: Webhook[] } = { version: -1, webhooks: [] };

  constructor(registry: Registry, plural: string) {
    this.#store = (
      registry.find({ group: "admissionregistration.k8s.io", version: "v1", plural }) as ServedResource
    ).store;
  }

  matching(write: AdmittedWrite): Called[] {
    return this.#webhooks().flatMap((webhook) => {
      const seen = matchWrite(webhook, write);
      return seen === undefined ? [] : [{ webhook, seen }];
    });
  }

  #webhooks(): Webhook[] {
    const { version } = this.#store;
    if (this.#known.version !== version) {
      const configurations = this.#store.list("").sort((a, b) => compareText(a.key, b.key));
      this.#known = { version, webhooks: configurations.flatMap(({ object }) => webhooksOf(object)) };
    }
    return this.#known.webhooks;
  }
}

// Returns the object to send: in the version that matched, or as a Scale for the scale subresource.
function shown(object: JsonObject, { write, seen }: { write: AdmittedWrite; seen: ServedResource }): JsonObject {
  const { resource } = write.context;
  if (write.part !== undefined) return object;
  if (write.subresource === "scale") return scaleOf(resource.type, { object }, { needsReplicas: false });
  return resource.formIn(seen, object);
}

function patched(
  object: JsonObject,
  patch: JsonValue,
  { write, seen }: { write: AdmittedWrite; seen: ServedResource },
): JsonObject {
  const { resource } = write.context;
  try {
    const result = applyJsonPatch(shown(object, { write, seen }), patch);
    if (!isObject(result))
      throw new Error(`json: cannot unmarshal ${typeof result} into Go value of type map[string]interface {}`);
    if (write.subresource === "scale") return withScale(resource.type, object, result);
    const { part } = write;
    const { rules } = part ?? seen;
    rules.decode(result);
    rules.fillDefaults(result);
    return part === undefined ? seen.formIn(resource, result) : result;
  } catch (error) {
    if (error instanceof PendingConversion) throw error;
    const { message } = error as Error;
    // An invalid patch is the fault of the webhook, not of the client, so it is an internal error.
    const ofType = error instanceof StatusError ? /cannot be handled as a [^:]*: (.*)$/s.exec(message)?.[1] : undefined;
    throw internalError(ofType ?? message);
  }
}

/** A webhook of a configuration; https://kubernetes.io/docs/reference/access-authn-authz/extensible-admission-controllers/ */
interface Webhook {
  name: string;
  clientConfig: JsonObject;
  rules: readonly JsonObject[];
  /** Whether a failed call denies the write. */
  failurePolicy: "Fail" | "Ignore";
  /** `Equivalent` also matches requests for other versions of a resource. */
  matchPolicy: "Exact" | "Equivalent";
  namespaceSelector: JsonObject;
  objectSelector: JsonObject;
  /** Whether the webhook is called again if the object changed after its call. */
  reinvocationPolicy: "Never" | "IfNeeded";
  timeoutSeconds: number;
  /** CEL expressions that must all be true for the webhook to be called. */
  matchConditions: readonly MatchCondition[];
}

/** Parses the webhooks of a stored configuration, which is already defaulted and validated. */
function webhooksOf(configuration: JsonObject): Webhook[] {
  return (arrayAt(configuration, "webhooks") ?? []).filter(isObject).map((webhook) => {
    const timeout = webhook["timeoutSeconds"];
    return {
      name: stringAt(webhook, "name") ?? "",
      clientConfig: objectAt(webhook, "clientConfig") ?? {},
      rules: (arrayAt(webhook, "rules") ?? []).filter(isObject),
      failurePolicy: stringAt(webhook, "failurePolicy") === "Ignore" ? "Ignore" : "Fail",
      matchPolicy: stringAt(webhook, "matchPolicy") === "Exact" ? "Exact" : "Equivalent",
      namespaceSelector: objectAt(webhook, "namespaceSelector") ?? {},
      objectSelector: objectAt(webhook, "objectSelector") ?? {},
      reinvocationPolicy: stringAt(webhook, "reinvocationPolicy") === "IfNeeded" ? "IfNeeded" : "Never",
      matchConditions: matchConditionsOf(webhook),
      timeoutSeconds: typeof timeout === "number" ? timeout : 10,
    };
  });
}
