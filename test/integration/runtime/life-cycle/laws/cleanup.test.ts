// Deletion depends on nothing that may be gone.
//
// Before or while a page is deleted, any of what its cleanup reads goes: by another client, by a foreground deletion, or with the namespace. The
// page goes all the same, and leaves behind nothing that the operator has to delete.
import { waitFor } from "#apiserver/wait-for.js";
import { isRealApiServer } from "../../../../support/api/api-server.js";
import fc from "../../../../support/fast-check.js";
import { attempt } from "../model/world.js";
import { EventualService, type Resource } from "./eventual-service.js";
import { ConfigMap, Page, Secret, textController, type DataObject } from "./kinds.js";
import { declareLaw, isBroken, type Scenario } from "./law.js";
import { Namespace, scenesOf, type Scene } from "./scene.js";

const TOKEN = Buffer.from("token").toString("base64");

/** The dependents of the page: `input` is made by another client, and the others may read or depend on those before them. */
interface Case {
  readonly secret: "none" | "garbageCollected" | "ordered";
  /** Whether the Secret is kept until the cleanup has read it. */
  readonly isHeld?: boolean;
  /** Where the ordered ConfigMap is. */
  readonly child: "none" | "home" | "elsewhere";
  /** The condition of the ordered ConfigMap that reads `input`. */
  readonly condition?: "activationCondition" | "reconcilePrecondition" | "deletePostcondition";
  /** Whether `desired` of the ordered ConfigMap reads `input`. */
  readonly isComputed?: boolean;
  /** Whether the ordered ConfigMap is an item of a bulk dependent, whose items the page names. */
  readonly isItem?: boolean;
  /** Whose data the deletion of the resource reads. */
  readonly external: "none" | "nothing" | "secret" | "input";
  readonly finalizer?: string;
  readonly commands: readonly Command[];
}

/** After a restart nothing is known of what is gone, unless it was held. */
function isPromised({ isHeld = false, external, commands }: Case): boolean {
  const isRestarted = commands.some((command) => RESTARTS.includes(command));
  if (external === "input") return !isRestarted;
  return external !== "secret" || isHeld || !isRestarted;
}

interface Arguments {
  readonly secondary: { readonly input?: DataObject; readonly secret?: DataObject };
  readonly live?: object;
}

// The controllers of a real control plane take their time.
const GOING = { timeoutMs: isRealApiServer ? 4_000 : 500 };

interface World {
  readonly scene: Scene;
  readonly service: EventualService;
  isDown: boolean;
  isNamespaceDeleted: boolean;
}

const refOf = ({ namespace }: Scene, name = "one") => ({ name, namespace });
const childNamespaceOf = ({ id, namespace }: Scene, { child }: Case) =>
  child === "elsewhere" ? `${id}-other` : namespace;

function dependentsOf(world: World, one: Case): object[] {
  const { secret, child, external, isHeld, condition, isComputed = false, isItem = false } = one;
  const input = {
    name: "input",
    resource: ConfigMap.definition,
    mode: "readOnly",
    dependsOn: [],
    ref: { name: "input" },
  };
  const objectOf = (name: string, data: object) => ({ metadata: { name }, data });
  // The functions trust their types, as those of users do.
  const isOn = ({ secondary }: Arguments) => secondary.input!.data!["on"] === "true";
  const conditions = {
    activationCondition: isOn,
    reconcilePrecondition: isOn,
    deletePostcondition: (args: Arguments) => isOn(args) && args.live === undefined,
  };
  const secretNode = {
    ...{ name: "secret", resource: Secret.definition, dependsOn: [], deletion: secret },
    ...(isHeld ? { heldForCleanup: true } : {}),
    desired: () => objectOf("secret", { token: TOKEN }),
  };
  const childNode = {
    ...{ name: "child", resource: ConfigMap.definition, deletion: "ordered" },
    dependsOn: condition === undefined && !isComputed ? [] : ["input"],
    ...(child === "elsewhere" ? { namespace: childNamespaceOf(world.scene, one) } : {}),
    ...(condition === undefined ? {} : { [condition]: conditions[condition] }),
    ...(isItem ? { bulk: {} } : {}),
    desired: ({ primary, secondary }: Arguments & { readonly primary: Page }) => {
      const object = objectOf("child", isComputed ? { on: secondary.input!.data!["on"] } : {});
      if (!isItem) return object;
      return primary.spec?.text === "first" ? { child: object } : {};
    },
  };
  const tokens = {
    secret: ({ secondary }: Arguments) => secondary.secret!.data!["token"] === TOKEN,
    input: ({ secondary }: Arguments) => secondary.input!.data!["on"] !== undefined,
  };
  const { service } = world;
  const owner = world.scene.id;
  const externalNode = {
    name: "external",
    dependsOn: external === "secret" || external === "input" ? [external] : [],
    source: { kind: "perPrimaryPoll", intervalMs: 20, fetch: () => service.list(owner) },
    idOf: ({ id = "" }: Partial<Resource>) => id,
    // Reads of the service are never late here. A page of which an operator that was started anew finds no resource is held that long.
    creationGraceMs: 300,
    desired: () => ({ owner, item: "", value: "" }),
    matches: () => true,
    create: (draft: Omit<Resource, "id">) => service.create(draft),
    delete: ({ id }: Resource, args: Arguments) => {
      if (world.isDown) throw new Error("the service is down");
      if ((external === "secret" || external === "input") && !tokens[external](args)) throw new Error("wrong token");
      service.delete(id);
    },
  };
  const needsInput = external === "input" || condition !== undefined || isComputed;
  return [
    ...(needsInput ? [input] : []),
    ...(secret === "none" ? [] : [secretNode]),
    ...(child === "none" ? [] : [childNode]),
    ...(external === "none" ? [] : [externalNode]),
  ];
}

const removeObject = (kind: typeof ConfigMap, name: string) => (world: World, one: Case) =>
  attempt(async () => {
    const namespace = name === "child" ? childNamespaceOf(world.scene, one) : world.scene.namespace;
    if ((await world.scene.get(kind, name, namespace)) !== undefined)
      await world.scene.client.delete(kind, { name, namespace });
  });
const deletePage =
  (propagationPolicy: "Background" | "Foreground") =>
  ({ scene }: World) =>
    attempt(() => scene.client.delete(Page, refOf(scene), { propagationPolicy }));

const COMMANDS = {
  "delete input": removeObject(ConfigMap, "input"),
  "input turns false": ({ scene }: World) =>
    attempt(() => scene.client.mergePatch(ConfigMap, refOf(scene, "input"), { data: { on: "false" } })),
  "delete secret": removeObject(Secret, "secret"),
  "delete child": removeObject(ConfigMap, "child"),
  "labels are removed": async (world: World, one: Case) => {
    const ref = { name: "child", namespace: childNamespaceOf(world.scene, one) };
    await attempt(() => world.scene.client.mergePatch(ConfigMap, ref, { metadata: { labels: null } }));
  },
  "the page names no item": ({ scene }: World) =>
    attempt(() => scene.client.mergePatch(Page, refOf(scene), { spec: { text: "second" } })),
  "a second resource appears": async ({ scene, service }: World) => {
    service.create({ owner: scene.id, item: "", value: "" });
    // The operator did not create it, so it is promised to delete only what it has seen.
    await service.untilRead();
  },
  "another client deletes the resources": ({ service }: World) =>
    service.resources.forEach(({ id }) => service.delete(id)),
  "the service is down": (world: World) => void (world.isDown = true),
  "the service is up": (world: World) => void (world.isDown = false),
  "the Secret goes": ({ scene }: World) =>
    waitFor("gone", async () => (await scene.get(Secret, "secret")) === undefined, GOING).catch(() => {}),
  "delete page": deletePage("Background"),
  "delete page in the foreground": deletePage("Foreground"),
  "delete namespace": async (world: World) => {
    world.isNamespaceDeleted = true;
    await attempt(() => world.scene.client.delete(Namespace, { name: world.scene.namespace }));
  },
  "stop the operator": ({ scene }: World) => scene.stop(),
  "start the operator": ({ scene }: World) => scene.start(),
} as const;
type Command = keyof typeof COMMANDS;
const RESTARTS: readonly Command[] = ["stop the operator", "start the operator"];

async function play(scene: Scene, one: Case): Promise<void> {
  const world: World = { scene, service: new EventualService(), isDown: false, isNamespaceDeleted: false };
  if (one.child === "elsewhere") await scene.createNamespace(childNamespaceOf(scene, one));
  await scene.client.create(ConfigMap, { metadata: refOf(scene, "input"), data: { on: "true" } });
  const { finalizer } = one;
  await scene.start(textController(scene, { dependents: dependentsOf(world, one), ...(finalizer && { finalizer }) }));
  await scene.client.create(Page, { metadata: refOf(scene), spec: { text: "first" } });
  if (!(await scene.until("the page is ready", () => scene.events.at(-1)?.workflow?.isReady === true))) return;
  for (const command of one.commands) {
    await COMMANDS[command](world, one);
    // While the service is down the cleanup is tried again and again.
    // So is the reconcile of a page to which two resources belong.
    const isAmbiguous = () => world.service.resources.length > 1 && scene.events.at(-1)?.error !== undefined;
    if (!world.isDown) await scene.quiet(isAmbiguous);
    else await scene.until("the cleanup was tried", isTried(scene));
  }
  world.isDown = false;
  if (scene.operator === undefined) await scene.start();
  if (await needsNoFinalizer(scene, one))
    await scene.until("the page has no finalizer", async () => (await finalizersOf(scene)).length === 0);
  await deletePage("Background")(world);
  await scene.until("the page is gone", async () => (await scene.get(Page, "one")) === undefined);
  if (world.service.resources.length > 0) scene.problems.push("the external resource is left behind");
  const child = () => scene.get(ConfigMap, "child", childNamespaceOf(scene, one));
  if (one.child !== "none") await scene.until("the child is gone", async () => (await child()) === undefined);
  await scene.until("the Secret is gone", async () => (await scene.get(Secret, "secret")) === undefined);
  await scene.quiet();
}

const finalizersOf = async (scene: Scene) => (await scene.get(Page, "one"))?.metadata.finalizers ?? [];

// While nothing that the operator has to delete is wanted, an operator that is away holds up nobody.
async function needsNoFinalizer(scene: Scene, { secret, condition, external }: Case): Promise<boolean> {
  if (secret === "ordered" || external !== "none" || condition !== "reconcilePrecondition") return false;
  const [page, input] = [await scene.get(Page, "one"), await scene.get(ConfigMap, "input")];
  return page?.metadata.deletionTimestamp === undefined && input?.data?.["on"] === "false";
}

// A deletion that fails, or an operator that does not run, or a page that is not deleted yet.
function isTried(scene: Scene): () => Promise<boolean> {
  const before = scene.events.length;
  return async () => {
    const page = await scene.get(Page, "one");
    const isWaiting = page === undefined || page.metadata.deletionTimestamp === undefined;
    return isWaiting || scene.operator === undefined || scene.events.length > before + 1;
  };
}

const scenarios: Scenario<Case>[] = [];
const none = { secret: "none", child: "none", external: "none" } as const;
function add(title: string, one: Partial<Case>): void {
  scenarios.push({ seed: scenarios.length + 1, title, case: { ...none, commands: [], ...one } });
}
const readsSecret = { secret: "garbageCollected", external: "secret" } as const;
add("deletes an external resource with a Secret that was deleted before", {
  ...readsSecret,
  commands: ["the service is down", "delete page", "delete secret", "the service is up"],
});
add("deletes an external resource with a Secret that foreground deletion has deleted", {
  ...readsSecret,
  commands: ["the service is down", "delete page in the foreground", "the Secret goes", "the service is up"],
});
add("deletes an external resource with a Secret that was deleted with the namespace", {
  ...readsSecret,
  commands: ["the service is down", "delete namespace", "the Secret goes", "the service is up"],
});
add("deletes an external resource with a Secret held by heldForCleanup after a restart", {
  ...{ ...readsSecret, isHeld: true },
  commands: ["stop the operator", "delete page", "delete secret", "start the operator"],
});
add("recreates a Secret with heldForCleanup that is deleted while its primary exists", {
  ...{ ...readsSecret, isHeld: true },
  commands: ["delete secret", "delete page"],
});
add("deletes an external resource with a referenced object that was deleted before", {
  external: "input",
  commands: ["the service is down", "delete page", "delete input", "the service is up"],
});
add("removes the finalizer if another client deleted the external resource before a restart", {
  external: "nothing",
  commands: ["stop the operator", "another client deletes the resources", "delete page", "start the operator"],
});
add("deletes all external resources of the primary", {
  external: "nothing",
  commands: ["a second resource appears", "delete page"],
});
for (const condition of ["activationCondition", "reconcilePrecondition", "deletePostcondition"] as const)
  for (const child of ["home", "elsewhere"] as const) {
    add(`deletes an ordered object although the input of its ${condition} was deleted (${child})`, {
      ...{ child, condition },
      commands: ["delete input", "delete page"],
    });
    if (condition === "deletePostcondition") continue;
    add(`deletes an ordered object although its ${condition} became false (${child})`, {
      ...{ child, condition },
      commands: ["input turns false", "delete page"],
    });
  }
add("deletes an ordered object although its activationCondition became false before a restart", {
  ...{ child: "elsewhere", condition: "activationCondition" },
  commands: ["input turns false", "stop the operator", "delete page", "start the operator"],
});
add("deletes an ordered object although the input of its activationCondition was deleted before a restart", {
  ...{ child: "elsewhere", condition: "activationCondition" },
  commands: ["stop the operator", "delete page", "delete input", "start the operator"],
});
add("deletes all objects and resources with the namespace", {
  ...{ secret: "ordered", child: "elsewhere", condition: "activationCondition", external: "secret" },
  commands: ["the service is down", "delete namespace", "the Secret goes", "the service is up"],
});
add("deletes an ordered object although the input of its deletePostcondition was deleted before a restart", {
  ...{ child: "elsewhere", condition: "deletePostcondition" },
  commands: ["stop the operator", "delete page", "delete input", "start the operator"],
});
for (const child of ["home", "elsewhere"] as const) {
  add(`deletes an unlabelled ordered object although the input of desired() was deleted before a restart (${child})`, {
    ...{ child, isComputed: true },
    commands: ["stop the operator", "labels are removed", "delete input", "delete page", "start the operator"],
  });
  add(`deletes an ordered object that lost its label after the input of desired() was deleted (${child})`, {
    ...{ child, isComputed: true },
    commands: ["delete input", "labels are removed", "delete page"],
  });
  add(`deletes an unlabelled item that desired() no longer returns (${child})`, {
    ...{ child, isItem: true },
    commands: ["stop the operator", "labels are removed", "the page names no item", "start the operator"],
  });
}
add("deletes an unlabelled item of a primary that was deleted while the operator was stopped", {
  ...{ child: "home", isItem: true },
  commands: ["stop the operator", "labels are removed", "the page names no item", "delete page", "start the operator"],
});
add("removes the finalizer of a primary without ordered objects", {
  ...{ child: "elsewhere", condition: "reconcilePrecondition" },
  commands: ["input turns false"],
});
add("supports a finalizer without a slash", { child: "elsewhere", finalizer: "deletion", commands: ["delete page"] });

// A resource that others create belongs to a page that has the dependent, and lives.
function hasOwnerOfResources({ external, commands }: Case): boolean {
  const last = commands.lastIndexOf("a second resource appears");
  const isEnd = (each: Command) =>
    each.startsWith("delete page") || each === "delete namespace" || RESTARTS.includes(each);
  const end = commands.findIndex(isEnd);
  return last < 0 || (external !== "none" && (end < 0 || last < end));
}

const cases: fc.Arbitrary<Case> = fc
  .record({
    secret: fc.constantFrom("none", "garbageCollected", "ordered"),
    isHeld: fc.boolean(),
    child: fc.constantFrom("none", "home", "elsewhere"),
    condition: fc.constantFrom(undefined, "activationCondition", "reconcilePrecondition", "deletePostcondition"),
    isComputed: fc.boolean(),
    isItem: fc.boolean(),
    external: fc.constantFrom("none", "nothing", "secret", "input"),
    commands: fc.array(fc.constantFrom(...(Object.keys(COMMANDS) as Command[])), { minLength: 1, maxLength: 6 }),
  })
  .map(({ condition, ...rest }) => ({ ...rest, ...(condition === undefined ? {} : { condition }) }) as Case)
  // What reads a Secret has one.
  .filter(({ secret, external }) => external !== "secret" || secret !== "none")
  .filter(hasOwnerOfResources)
  // A deletePostcondition that is false while all that it reads is there holds the page, as it should.
  .filter(({ condition, commands }) => condition !== "deletePostcondition" || !commands.includes("input turns false"))
  .filter(isPromised);

declareLaw<Case>({
  name: "cleanup",
  title: "cleanup with deleted inputs",
  open: scenesOf({ simulate: ["garbage-collection", "namespaces"] }),
  scenarios,
  play,
  explored: {
    title: "completes and leaves nothing behind for random deletions and restarts",
    cases: isBroken("cleanup") ? undefined : cases,
  },
});
