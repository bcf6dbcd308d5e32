// No write replaces an existing object whose live state was not an input of `desired`.
//
// A password that `desired` makes once, and replicas that it keeps, are what they were when the operator could first see them, or what another
// client made of them later; whatever hides the object from the watch of the operator.
import { randomBytes } from "node:crypto";
import { CONTROLLER_LABEL, DEPENDENT_NAME } from "#runtime/base/primary-link.js";
import type { KubernetesDependent } from "#runtime/workflow/workflow-definition.js";
import fc from "../../../../support/fast-check.js";
import { builtinDefinition, classOf } from "../../../../support/kinds/kind-definitions.js";
import type { KubernetesObject } from "#runtime/base/kubernetes-object.js";
import { attempt } from "../model/world.js";
import { Page, Secret, textController, type DataObject } from "./kinds.js";
import { declareLaw, isBroken, type Scenario } from "./law.js";
import { scenesOf, type Scene } from "./scene.js";

interface App extends KubernetesObject {
  spec?: { replicas?: number; template?: object };
}
const Deployment = classOf<App>(builtinDefinition("apps/v1", "Deployment"));
const PASSWORD = "one-password";
const APP = "one-app";

const WAYS = {
  apply: {},
  put: { serverSideApply: false },
  createOnly: { mode: "createOnly" },
  bulk: { bulk: {} },
  ownUpdate: { operations: { update: ({ next }: { next(): Promise<void> }) => next() } },
} as const satisfies { readonly [way: string]: Partial<KubernetesDependent> };

/** How the operator is set up, and what happens to it. */
interface Case {
  readonly way: keyof typeof WAYS;
  readonly deletion: "garbageCollected" | "ordered";
  readonly existing: "adopt" | "refuse";
  readonly commands: readonly Command[];
}

type Live<Of> = Of | { readonly [item: string]: Of } | undefined;
interface Arguments {
  readonly primary: Page;
  readonly secondary: { readonly password: Live<DataObject>; readonly app: Live<App> };
}

const encode = (text: string) => Buffer.from(text).toString("base64");
const newPassword = () => randomBytes(6).toString("base64");
const secretOf = (password: string, text: string) => ({
  metadata: { name: PASSWORD },
  data: { password, text: encode(text) },
});
const appOf = (replicas: number, text: string) => ({
  metadata: { name: APP },
  spec: {
    replicas,
    selector: { matchLabels: { app: "one" } },
    template: {
      metadata: { labels: { app: "one" }, annotations: { text } },
      spec: { containers: [{ name: "app", image: "app" }] },
    },
  },
});

/** The two objects and what they have to be. */
class Takeover {
  readonly scene: Scene;
  readonly case: Case;
  name: string;
  text = "first";
  /** Whether the operator may refuse the objects: at some time nothing said of one of them whose it was. */
  isForeign = false;
  readonly #kept = new Map<string, { uid: string | undefined; value: unknown }>();
  #texts = 0;
  #held: Disposable | undefined;

  constructor(scene: Scene, one: Case) {
    this.scene = scene;
    this.case = one;
    this.name = scene.id;
  }

  async start(name = this.name): Promise<void> {
    const { way, deletion, existing } = this.case;
    // A start needs its watches.
    this.release();
    if (name !== this.name) await this.noteLinks({ isRenamed: true });
    const formerNames = name === this.name ? [] : [this.name];
    this.name = name;
    const itemOf = <Of>(live: Live<Of>) =>
      (way === "bulk" ? (live as { readonly [item: string]: Of } | undefined)?.["a"] : live) as Of | undefined;
    const stated = (object: object) => (way === "bulk" ? { a: object } : object);
    const options = { ...WAYS[way], deletion, existing, dependsOn: [] };
    const dependents = [
      {
        ...{ name: "password", resource: Secret.definition, ...options },
        desired: ({ primary, secondary }: Arguments) =>
          stated(secretOf(itemOf(secondary.password)?.data?.["password"] ?? newPassword(), primary.spec.text)),
      },
      {
        ...{ name: "app", resource: Deployment.definition, ...options },
        desired: ({ primary, secondary }: Arguments) =>
          stated(appOf(itemOf(secondary.app)?.spec?.replicas ?? 1, primary.spec.text)),
      },
    ];
    await this.scene.start(textController(this.scene, { name, dependents, formerNames }));
  }

  hold(): void {
    if (this.#held !== undefined) return;
    const { faults, id: user } = this.scene;
    const held = [Secret, Deployment].map(({ definition: { kind } }) => faults.holdWatches({ user, kind }));
    this.#held = { [Symbol.dispose]: () => held.forEach((each) => each.release()) };
  }

  release(): void {
    this.#held?.[Symbol.dispose]();
    this.#held = undefined;
  }

  async patch(kind: typeof Secret | typeof Deployment, patch: object): Promise<void> {
    const name = kind === Secret ? PASSWORD : APP;
    await attempt(() =>
      this.scene.client.mergePatch(kind as typeof Secret, { name, namespace: this.scene.namespace }, patch),
    );
  }

  async patchBoth(metadata: object): Promise<void> {
    for (const kind of [Secret, Deployment] as const) await this.patch(kind, { metadata });
  }

  /** Takes note of whether something says whose the objects are; the label with the former name of a controller does not. */
  async noteLinks({ isRenamed = false } = {}): Promise<void> {
    const objects = [await this.scene.get(Secret, PASSWORD), await this.scene.get(Deployment, APP)];
    const hasNoLink = ({ metadata: { labels, annotations, ownerReferences } }: KubernetesObject) =>
      (isRenamed || labels?.[CONTROLLER_LABEL] === undefined) &&
      annotations?.[DEPENDENT_NAME] === undefined &&
      (ownerReferences ?? []).length === 0;
    this.isForeign ||= objects.some((object) => object !== undefined && hasNoLink(object));
  }

  /** Takes note of what another client made of the objects. */
  async note(): Promise<void> {
    for (const [name, found] of await this.#found()) this.#kept.set(name, found);
  }

  async check(after: string): Promise<void> {
    for (const [name, found] of await this.#found()) {
      const kept = this.#kept.get(name);
      if (kept === undefined) this.#kept.set(name, found);
      else if (kept.uid !== found.uid) this.scene.problems.push(`${name} is another object after "${after}"`);
      else if (kept.value !== found.value)
        this.scene.problems.push(`${name}: ${kept.value} was overwritten by ${found.value} after "${after}"`);
      // One problem is told once.
      if (kept !== undefined) this.#kept.set(name, found);
    }
  }

  forget(): void {
    this.#kept.clear();
  }

  newText(): string {
    return (this.text = `text-${++this.#texts}`);
  }

  async #found(): Promise<Map<string, { uid: string | undefined; value: unknown }>> {
    const [secret, app] = [await this.scene.get(Secret, PASSWORD), await this.scene.get(Deployment, APP)];
    return new Map([
      ...(secret ? [[PASSWORD, { uid: secret.metadata.uid, value: secret.data?.["password"] }] as const] : []),
      ...(app ? [[APP, { uid: app.metadata.uid, value: app.spec?.replicas }] as const] : []),
    ]);
  }

  /** What is not as desired in the end. */
  async differences(): Promise<string[]> {
    const { scene, text, name } = this;
    const [secret, app] = [await scene.get(Secret, PASSWORD), await scene.get(Deployment, APP)];
    const template = app?.spec?.template as { metadata: { annotations?: { text?: string } } } | undefined;
    const isStale = this.case.way !== "createOnly";
    return [
      ...(isStale && secret?.data?.["text"] !== encode(text) ? ["the Secret is not as desired"] : []),
      ...(isStale && template?.metadata.annotations?.text !== text ? ["the Deployment is not as desired"] : []),
      ...[secret, app].flatMap((each) =>
        each?.metadata.labels?.[CONTROLLER_LABEL] === name ? [] : `${each?.metadata.name} lacks the label of ${name}`,
      ),
    ];
  }
}

const page = { name: "one" };
const none = (...keys: readonly string[]) => Object.fromEntries(keys.map((key) => [`gen-operator.dev/${key}`, null]));
const ANNOTATIONS = none("primary-name", "primary-namespace", "primary-type", "dependent", "item", "object");

const COMMANDS = {
  "create page": ({ scene, text }: Takeover) =>
    attempt(() => scene.client.create(Page, { metadata: { ...page, namespace: scene.namespace }, spec: { text } })),
  "edit page": async (world: Takeover) => {
    const { client, namespace } = world.scene;
    if ((await world.scene.get(Page, "one")) === undefined) return;
    await client.mergePatch(Page, { ...page, namespace }, { spec: { text: world.newText() } });
  },
  "another client makes the objects": async (world: Takeover) => {
    const { client, namespace } = world.scene;
    const at = <Of extends { metadata: { name: string } }>(object: Of) => ({
      ...object,
      metadata: { ...object.metadata, namespace },
    });
    await attempt(() => client.create(Secret, at(secretOf(newPassword(), "theirs"))));
    await attempt(() => client.create(Deployment, at(appOf(5, "theirs"))));
    await world.note();
  },
  "another client sets password and replicas": async (world: Takeover) => {
    await world.patch(Secret, { data: { password: newPassword() } });
    await world.patch(Deployment, { spec: { replicas: 2 + Math.floor(Math.random() * 7) } });
    await world.note();
  },
  "another client deletes the objects": async (world: Takeover) => {
    const { client, namespace } = world.scene;
    world.forget();
    await attempt(() => client.delete(Secret, { name: PASSWORD, namespace }));
    await attempt(() => client.delete(Deployment, { name: APP, namespace }));
  },
  "labels are removed": (world: Takeover) => world.patchBoth({ labels: null }),
  "annotations are removed": (world: Takeover) => world.patchBoth({ annotations: ANNOTATIONS }),
  "owners are removed": (world: Takeover) => world.patchBoth({ ownerReferences: null }),
  "all links are removed": (world: Takeover) =>
    world.patchBoth({ labels: null, annotations: ANNOTATIONS, ownerReferences: null }),
  "stop the operator": ({ scene }: Takeover) => scene.stop(),
  "start the operator": (world: Takeover) => world.start(),
  "rename the controller": (world: Takeover) => world.start(`${world.scene.id}-${world.name.length}`),
  "watches fall behind": (world: Takeover) => world.hold(),
  "watches catch up": (world: Takeover) => world.release(),
} as const;
type Command = keyof typeof COMMANDS;

async function play(scene: Scene, one: Case): Promise<void> {
  const world = new Takeover(scene, one);
  await world.start();
  for (const command of one.commands) {
    await COMMANDS[command](world);
    await world.noteLinks();
    await scene.quiet();
    await world.check(command);
  }
  world.release();
  if (scene.operator === undefined) await world.start();
  await scene.quiet();
  await world.check("the end");
  if ((await scene.get(Page, "one")) === undefined || (world.isForeign && one.existing === "refuse")) return;
  await scene.until("as desired", () => world.differences());
  await world.check("all is as desired");
}

const made = ["create page", "another client sets password and replicas"] as const;
const sequences: { readonly [title: string]: readonly Command[] } = {
  "whose label is removed": [...made, "labels are removed", "edit page"],
  "whose annotations are removed": [...made, "annotations are removed", "edit page"],
  "whose owner references are removed": [...made, "owners are removed", "edit page"],
  "whose label is removed while the operator is stopped": [
    ...made,
    "stop the operator",
    "labels are removed",
    "start the operator",
  ],
  "whose annotations are removed while the operator is stopped": [
    ...[...made, "stop the operator", "annotations are removed", "start the operator", "edit page"],
  ] as Command[],
  "whose links are removed one by one while the operator is stopped": [
    ...[...made, "stop the operator", "labels are removed", "owners are removed", "annotations are removed"],
    ...["start the operator", "edit page"],
  ] as Command[],
  "whose annotations are removed before its controller is renamed": [
    ...[...made, "stop the operator", "annotations are removed", "rename the controller", "edit page"],
  ] as Command[],
  "of a renamed controller": [...made, "rename the controller", "edit page"],
  "that existed before its primary": ["another client makes the objects", "create page", "edit page"],
  "that changes while the watch is delayed": [
    ...["create page", "watches fall behind", "another client sets password and replicas", "edit page"],
    "watches catch up",
  ] as Command[],
  "that another client creates while the watch is delayed": [
    ...["watches fall behind", "another client makes the objects", "create page", "watches catch up"],
  ] as Command[],
  "that is unchanged since its creation and loses its links": ["create page", "all links are removed", "edit page"],
  "whose links are removed while the operator runs": [...made, "all links are removed", "edit page"],
  "whose links are removed while the operator is stopped": [
    ...made,
    "stop the operator",
    "all links are removed",
    "start the operator",
    "edit page",
  ],
};

const scenarios: Scenario<Case>[] = [];
function add(sequence: keyof typeof sequences, ways: readonly Case["way"][], rest: Partial<Case> = {}): void {
  for (const way of ways) {
    const { deletion = "garbageCollected", existing = "adopt" } = rest;
    const title = `keeps the live values of an object ${sequence} (${[way, ...Object.values(rest)].join(", ")})`;
    const one = { way, deletion, existing, commands: sequences[sequence]! };
    scenarios.push({ seed: scenarios.length + 1, title, case: one });
  }
}
add("whose label is removed", ["apply", "put", "bulk", "ownUpdate"], { existing: "refuse" });
add("whose label is removed", ["apply"], { deletion: "ordered" });
add("whose label is removed while the operator is stopped", ["apply", "put", "createOnly"], { existing: "refuse" });
add("of a renamed controller", ["apply", "put", "bulk"], { existing: "refuse" });
add("that existed before its primary", ["apply", "put", "bulk", "ownUpdate", "createOnly"]);
add("that existed before its primary", ["apply"], { existing: "refuse" });
add("that changes while the watch is delayed", ["apply", "put"]);
add("that another client creates while the watch is delayed", ["apply"]);
add("whose links are removed while the operator is stopped", ["apply", "put", "createOnly", "bulk"]);
add("whose annotations are removed", ["apply", "ownUpdate", "createOnly", "put"]);
add("whose annotations are removed", ["apply", "bulk"], { deletion: "ordered" });
add("whose annotations are removed", ["put", "apply", "bulk"], { deletion: "ordered", existing: "refuse" });
add("whose annotations are removed while the operator is stopped", ["put", "apply", "bulk", "ownUpdate"], {
  ...{ deletion: "ordered", existing: "refuse" },
});
add("whose links are removed one by one while the operator is stopped", ["apply", "put", "ownUpdate"], {
  ...{ deletion: "ordered", existing: "refuse" },
});
add("whose annotations are removed before its controller is renamed", ["apply", "put", "bulk"], {
  existing: "refuse",
});
add("whose owner references are removed", ["apply", "createOnly"], { existing: "refuse" });
add("whose links are removed while the operator runs", ["createOnly", "ownUpdate"]);
add("that is unchanged since its creation and loses its links", ["createOnly"]);

const FAULTS: readonly Command[] = ["watches fall behind", "watches catch up"];
const cases: fc.Arbitrary<Case> = fc.record({
  way: fc.constantFrom(...(Object.keys(WAYS) as Case["way"][])),
  deletion: fc.constantFrom("garbageCollected", "ordered"),
  existing: fc.constantFrom("adopt", "refuse"),
  commands: fc
    .array(fc.constantFrom(...(Object.keys(COMMANDS) as Command[])), { minLength: 2, maxLength: 8 })
    .map((rest) => ["create page", ...rest] as const),
});

declareLaw<Case>({
  name: "takeover",
  title: "write to an unobserved object",
  open: scenesOf(),
  scenarios,
  play,
  needsFaults: ({ commands }) => commands.some((command) => FAULTS.includes(command)),
  explored: {
    title: "keeps the live values of an object for random removals of links, renames and delayed watches",
    cases: isBroken("takeover") ? undefined : cases,
  },
});
