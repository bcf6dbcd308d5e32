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

/** A webhook that wants to see a write, and the resource in the version in which it does. */
interface Called {
  webhook: Webhook;
  seen: ServedResource;
}

/** Returns what webhooks are asked about when they are asked again. */
type Between = (object: JsonObject) => JsonObject | Promise<JsonObject>;

/** Asks the webhooks of MutatingWebhookConfigurations and ValidatingWebhookConfigurations. */
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

  /** `between` is called before webhooks are asked again, and returns what they are asked about. */
  mutate(write: AdmittedWrite, between: Between = (object) => object): Promise<JsonObject> | undefined {
    const called = this.#mutating.matching(write);
    return called.length === 0 ? undefined : this.#mutateBy(called, write, between);
  }

  validate(write: AdmittedWrite): Promise<void> | undefined {
    const called = this.#validating.matching(write);
    return called.length === 0 ? undefined : this.#validateBy(called, write);
  }

  // One after the other, by the names of their configurations; once more those that want to see what later ones changed.
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
    // A deletion has no object that could be changed.
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

  // All at once; of several refusals the first one counts.
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

  /** Returns what a webhook says; undefined when its conditions do not hold, or it cannot be asked and its failures are ignored. */
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

/** The webhooks of one kind of configuration in the order in which they are asked. */
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

// What a webhook is shown of an object: the version that it wants, and of a scale the Scale.
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
    // What a webhook makes is its own failure, not the client's.
    const ofType = error instanceof StatusError ? /cannot be handled as a [^:]*: (.*)$/s.exec(message)?.[1] : undefined;
    throw internalError(ofType ?? message);
  }
}

/** One webhook of a configuration; https://kubernetes.io/docs/reference/access-authn-authz/extensible-admission-controllers/ */
interface Webhook {
  name: string;
  clientConfig: JsonObject;
  rules: readonly JsonObject[];
  /** Whether a call that fails refuses the write. */
  failurePolicy: "Fail" | "Ignore";
  /** Whether writes in other versions of a resource count. */
  matchPolicy: "Exact" | "Equivalent";
  namespaceSelector: JsonObject;
  objectSelector: JsonObject;
  /** Whether it is asked again when a later webhook changed the object. */
  reinvocationPolicy: "Never" | "IfNeeded";
  timeoutSeconds: number;
  /** In CEL; all have to hold, or the webhook is not asked. */
  matchConditions: readonly MatchCondition[];
}

/** Reads the webhooks of a configuration that the server has stored, and so completed and checked. */
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
