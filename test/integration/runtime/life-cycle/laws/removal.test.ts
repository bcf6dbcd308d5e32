// What was stated once and is stated no more goes, on every way to write; what other clients set, and no write took over, stays.
import type { ObjectMeta } from "#runtime/base/kubernetes-object.js";
import fc from "../../../../support/fast-check.js";
import { attempt } from "../model/world.js";
import { ConfigMap, Page, textController } from "./kinds.js";
import { declareLaw, isBroken, type Scenario } from "./law.js";
import { scenesOf, type Scene } from "./scene.js";

type Way = "apply" | "put";

interface Case {
  readonly way: Way;
  readonly commands: readonly Command[];
}

class World {
  readonly scene: Scene;
  way: Way;
  name: string;
  /** The names that the controller had before. */
  readonly names = new Set<string>();
  /** The keys that the page states; each of them is one of the data, a label and an annotation. */
  stated = "abc";
  /** The members, by their paths, that other clients set last: they own them until the operator writes them. */
  readonly foreign = new Set<string>();
  /** Whether it was lost which client set which member. */
  isStripped = false;
  /** Whether the object was ever replaced, which takes away what others added outside of its metadata. */
  isReplaced = false;
  /** The way and the keys that the operator reconciled last. */
  #reconciled = "";

  constructor(scene: Scene, { way }: Case) {
    this.scene = scene;
    this.way = way;
    this.name = scene.id;
  }

  get ref() {
    return { name: "one", namespace: this.scene.namespace };
  }

  async start(name = this.name): Promise<void> {
    this.names.add(this.name).delete(name);
    const formerNames = [...this.names];
    this.name = name;
    this.isReplaced ||= this.way === "put";
    const desired = ({ primary }: { primary: Page }) => {
      const members = (prefix: string) =>
        Object.fromEntries([...(primary.spec.more ?? "")].map((key) => [`${prefix}${key}`, "ours"]));
      const metadata = { name: "one", labels: members("key-"), annotations: members("example.com/") };
      return { metadata, data: members("") };
    };
    const node = { name: "config", resource: ConfigMap.definition, dependsOn: [], desired };
    const dependents = [{ ...node, serverSideApply: this.way === "apply" }];
    await this.scene.start(textController(this.scene, { name, dependents, formerNames }));
  }

  async state(keys: string): Promise<void> {
    this.stated = keys;
    await this.scene.client.mergePatch(Page, this.ref, { spec: { more: keys } });
  }

  /** Takes note of what an operator that runs has written: what is stated is its own again. */
  reconciled(): void {
    if (this.scene.operator === undefined) return;
    const { way, stated } = this;
    const isStated = (each: string) =>
      [...stated].some((key) => each.endsWith(`/${key}=theirs`) || each === `data ${key}=theirs`);
    // The PUT of another statement replaces all that is not metadata.
    const isPut = way === "put" && this.#reconciled !== `${way} ${stated}`;
    for (const each of this.foreign)
      if (isStated(each) || (isPut && each.startsWith("data"))) this.foreign.delete(each);
    this.#reconciled = `${way} ${stated}`;
  }

  patch(patch: object): Promise<void> {
    return attempt(() => this.scene.client.mergePatch(ConfigMap, this.ref, patch));
  }

  /** What is left over, or missing. */
  async differences(): Promise<string[]> {
    const live = await this.scene.get(ConfigMap, "one");
    const { labels, annotations }: Partial<ObjectMeta> = live?.metadata ?? {};
    const isOwn = (key: string) => /^(?:key-|example\.com\/)?[a-z]$/.test(key);
    const found = Object.entries({ data: live?.data, labels, annotations }).flatMap(([part, members]) =>
      Object.entries(members ?? {}).flatMap(([key, value]) => (isOwn(key) ? `${part} ${key}=${value}` : [])),
    );
    const wanted = [...this.stated].flatMap((key) => [
      ...[`data ${key}=ours`, `labels key-${key}=ours`, `annotations example.com/${key}=ours`],
    ]);
    const stays = (each: string) => !this.isStripped && !(this.isReplaced && each.startsWith("data"));
    const missing = [...wanted, ...[...this.foreign].filter(stays)].filter((each) => !found.includes(each));
    // Of what nobody is known to have set, members of the metadata stay.
    const mayStay = (each: string) => this.foreign.has(each) || (this.isStripped && !each.startsWith("data"));
    const left = found.filter((each) => !wanted.includes(each) && !mayStay(each));
    return [...missing.map((each) => `${each} is missing`), ...left.map((each) => `${each} is left`)];
  }
}

const COMMANDS = {
  "state all": (world: World) => world.state("abc"),
  "state fewer": (world: World) => world.state("a"),
  "state others": (world: World) => world.state("cd"),
  "state none": (world: World) => world.state(""),
  "another client adds members": async (world: World) => {
    await world.patch({ data: { x: "theirs" }, metadata: { labels: { "key-x": "theirs" } } });
    world.foreign.add("data x=theirs").add("labels key-x=theirs");
  },
  "another client changes members": (world: World) =>
    world
      .patch({ data: { a: "theirs" }, metadata: { annotations: { "example.com/a": "theirs" } } })
      .then(() => void world.foreign.add("data a=theirs").add("annotations example.com/a=theirs")),
  "another client removes members": async (world: World) => {
    await world.patch({
      data: { a: null, x: null },
      metadata: { labels: { "key-x": null }, annotations: { "example.com/a": null } },
    });
    world.foreign.clear();
  },
  "the managed fields are lost": async (world: World) => {
    world.isStripped = true;
    await world.patch({ metadata: { managedFields: [{}] } });
  },
  "stop the operator": ({ scene }: World) => scene.stop(),
  "start the operator": (world: World) => world.start(),
  "rename the controller": (world: World) => world.start(`${world.scene.id}-${world.name.length}`),
  "write in the other way": async (world: World) => {
    world.way = world.way === "apply" ? "put" : "apply";
    await world.start();
  },
} as const;
type Command = keyof typeof COMMANDS;

async function play(scene: Scene, one: Case): Promise<void> {
  const world = new World(scene, one);
  await world.start();
  await scene.client.create(Page, { metadata: world.ref, spec: { text: "", more: "abc" } });
  await scene.until("the ConfigMap is there", async () => (await scene.get(ConfigMap, "one")) !== undefined);
  await scene.quiet();
  world.reconciled();
  for (const command of one.commands) {
    await COMMANDS[command](world);
    await scene.quiet();
    world.reconciled();
  }
  if (scene.operator === undefined) await world.start();
  world.reconciled();
  await scene.until("as stated", () => world.differences());
  await scene.quiet();
  if (scene.problems.length === 0) scene.problems.push(...(await world.differences()));
}

const sequences: { readonly [title: string]: readonly Command[] } = {
  "by the running operator": ["state fewer"],
  "after a restart, if desired() changed while the operator was stopped": [
    "stop the operator",
    "state fewer",
    "start the operator",
  ],
  "beside members added by another client": ["another client adds members", "state others"],
  "although another client changed it": ["another client changes members", "state others"],
  "after the managed fields were lost": ["the managed fields are lost", "state fewer"],
  "after the managed fields were lost while the operator was stopped": [
    ...["stop the operator", "the managed fields are lost", "state fewer", "start the operator"],
  ] as Command[],
  "after a rename of the controller": ["rename the controller", "state fewer"],
  "together with a rename of the controller": ["stop the operator", "state fewer", "rename the controller"],
  "after a switch between apply and PUT": ["write in the other way", "state fewer"],
  "when desired() returns no members": ["state none"],
  "except members that another client set before a switch between apply and PUT": [
    ...["state none", "stop the operator", "another client changes members", "start the operator"],
    ...["write in the other way"],
  ] as Command[],
  "except members that another client set before and after a switch between apply and PUT": [
    ...["state none", "stop the operator", "another client changes members", "start the operator"],
    ...["write in the other way", "another client changes members", "stop the operator", "start the operator"],
  ] as Command[],
  "except members that another client set around a switch, one of which is desired again": [
    ...["state none", "stop the operator", "another client changes members", "start the operator"],
    ...["write in the other way", "another client changes members", "state fewer"],
  ] as Command[],
  "except members that another client set while the operator was stopped": [
    ...["stop the operator", "another client changes members", "state none", "start the operator"],
  ] as Command[],
  "including members another client set while the operator was stopped, once they are written again": [
    ...["stop the operator", "another client changes members", "start the operator", "state none"],
  ] as Command[],
};
const scenarios = Object.entries(sequences)
  .flatMap(([title, commands]) =>
    (["apply", "put"] as const).map((way) => ({ title: `is removed ${title} (${way})`, case: { way, commands } })),
  )
  .map((scenario, index): Scenario<Case> => ({ ...scenario, seed: index + 1 }));

const cases: fc.Arbitrary<Case> = fc.record({
  way: fc.constantFrom("apply", "put"),
  commands: fc.array(fc.constantFrom(...(Object.keys(COMMANDS) as Command[])), { minLength: 2, maxLength: 8 }),
});

declareLaw<Case>({
  name: "removal",
  title: "member that is no longer desired",
  open: scenesOf(),
  scenarios,
  play,
  explored: {
    title: "is removed for random writes of other clients, restarts and renames",
    cases: isBroken("removal") ? undefined : cases,
  },
});
