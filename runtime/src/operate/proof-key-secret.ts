// The Secret with the operator's proof key, in the namespace of the operator.
import { randomBytes } from "node:crypto";
import { isApiError } from "../base/errors.js";
import { type KubernetesObject, type ObjectRef, builtinKindOf, describeObject } from "../base/kubernetes-object.js";
import { messageOf } from "../base/logger.js";
import { labelValueOf } from "../base/primary-link.js";
import { ProofKey, type ProofKeys } from "../base/proof-key.js";
import { systemClock } from "../base/wait.js";
import type { ApiClient } from "../client/api-client.js";

/** The Secret with the key that signs what the operator stores where other clients can write. */
export interface ProofKeySettings {
  /** The name of the Secret. Operators in one namespace can share it. Default: `gen-operator-proof-key` */
  readonly name?: string | undefined;
  /**
   * The namespace of the Secret; only the operator should be able to read Secrets in it. Default: the namespace of the Pod or of the kubeconfig
   * context, else `default`
   */
  readonly namespace?: string | undefined;
}

interface SecretObject extends KubernetesObject {
  readonly data?: { readonly [key: string]: string };
}

const SECRET = { definition: builtinKindOf<SecretObject>({ kind: "Secret", plural: "secrets" }) };
const KEY_BYTES = 32;

/**
 * The proof key of an operator, loaded on first use and created if it does not exist. An annotation per controller records that values stored by
 * earlier versions, without a proof, have been signed: from then on, unsigned values are ignored.
 */
export class ProofKeySecret implements ProofKeys {
  readonly ref: Required<ObjectRef>;
  readonly #client: Pick<ApiClient, "get" | "create" | "mergePatch">;
  #loaded: Promise<{ readonly key: ProofKey; readonly marks: Set<string> }> | undefined;

  constructor(
    client: Pick<ApiClient, "connection" | "get" | "create" | "mergePatch">,
    { name = "gen-operator-proof-key", namespace = client.connection.namespace ?? "default" }: ProofKeySettings = {},
  ) {
    this.ref = { name, namespace };
    this.#client = client;
  }

  /** Returns the key. Only the leader may call this, because the key may have to be created. After a failure, the next call tries again. */
  async load(signal?: AbortSignal): Promise<ProofKey> {
    return (await this.#load(signal)).key;
  }

  /** Returns the key if it exists and the operator is allowed to read it. */
  async find(): Promise<ProofKey | undefined> {
    if (this.#loaded !== undefined) return this.load();
    let secret: SecretObject | undefined;
    try {
      secret = await this.#client.get(SECRET, this.ref);
    } catch (error) {
      // A controller that writes proofs has the permission; for all others forged proofs have no effect.
      if (isApiError(error, 403)) return undefined;
      throw error;
    }
    return secret === undefined ? undefined : this.load();
  }

  /** Reports whether the unsigned values of a controller, under any of its names, have been signed. */
  async isMarked(controllers: readonly string[]): Promise<boolean> {
    const { marks } = await this.#load();
    return controllers.some((each) => marks.has(markOf(each)));
  }

  /** Records that all values of a controller have been signed. */
  async mark(controller: string): Promise<void> {
    const { marks } = await this.#load();
    const mark = markOf(controller);
    if (marks.has(mark)) return;
    const metadata = { ...this.ref, annotations: { [mark]: "true" } };
    await this.#attempt("marked", () => this.#client.mergePatch(SECRET, this.ref, { metadata } as never));
    marks.add(mark);
  }

  /** Returns the kubectl command that makes a controller sign all stored values at its next start. */
  describeReset(controller: string): string {
    const { name, namespace } = this.ref;
    return `kubectl annotate secret ${name} -n ${namespace} ${markOf(controller)}-`;
  }

  #load(signal?: AbortSignal) {
    this.#loaded ??= this.#read(signal).catch((error: unknown) => {
      this.#loaded = undefined;
      throw error;
    });
    return this.#loaded;
  }

  async #read(signal?: AbortSignal) {
    const secret = await this.#attempt("read", async () => {
      const found = await this.#client.get(SECRET, this.ref, { signal });
      if (found !== undefined) return found;
      const data = { key: randomBytes(KEY_BYTES).toString("base64") };
      const draft = { metadata: this.ref, data, immutable: true } as never;
      try {
        return await this.#client.create(SECRET, draft, { signal });
      } catch (error) {
        // Another operator in the namespace has created it first.
        if (!isApiError(error, 409)) throw error;
        return this.#client.get(SECRET, this.ref, { signal });
      }
    });
    const key = Buffer.from(secret?.data?.["key"] ?? "", "base64");
    if (key.length !== KEY_BYTES)
      throw new Error(
        `${describeObject(SECRET.definition, this.ref)} has no key of ${KEY_BYTES} bytes in data.key; restore it from a backup, or delete the ` +
          "Secret, to have the operator create a new key and sign all ids that it finds",
      );
    return { key: new ProofKey(key), marks: new Set(Object.keys(secret?.metadata.annotations ?? {})) };
  }

  async #attempt<Result>(what: string, request: () => Promise<Result>): Promise<Result> {
    try {
      return await request();
    } catch (error) {
      const { namespace } = this.ref;
      const advice = isApiError(error, 403)
        ? `; grant the operator get, create and patch of secrets in namespace "${namespace}" by a Role`
        : "";
      const problem = `the key for proofs, ${describeObject(SECRET.definition, this.ref)}, could not be ${what}: ${messageOf(error)}${advice}`;
      throw new Error(problem, { cause: error });
    }
  }
}

// Limits reads of the Secret: any client can write a proof, and so trigger one.
const READ_EVERY_MS = 60_000;

/** The key for the links of one controller: passed to `use` whenever it is loaded. */
export class LinkProofs implements ProofKeys {
  readonly #secret: ProofKeys;
  readonly #use: (key: ProofKey) => void;
  #readAfter = 0;

  constructor(secret: ProofKeys, use: (key: ProofKey) => void) {
    this.#secret = secret;
    this.#use = use;
  }

  find(): Promise<ProofKey | undefined> {
    return this.#secret.find();
  }

  async load(signal?: AbortSignal): Promise<ProofKey> {
    const key = await this.#secret.load(signal);
    this.#use(key);
    return key;
  }

  /** Reads the key after a proof was found, at most once a minute. Without the key, links with a proof are ignored. */
  async readAgain(): Promise<void> {
    const now = systemClock.now();
    if (now < this.#readAfter) return;
    this.#readAfter = now + READ_EVERY_MS;
    const key = await this.find();
    if (key !== undefined) this.#use(key);
  }
}

// The name part of an annotation key has at most 63 characters, like a label value.
function markOf(controller: string): string {
  return `ids-signed.gen-operator.dev/${labelValueOf(controller)}`;
}
