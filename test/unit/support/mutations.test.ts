import { drawMutations, findMutations, mutate, mutationKey } from "../../mutants/mutations.js";
import { assert, suite } from "../../support/suite.js";

const ELECTOR = `
export class Elector {
  async #renew(left: number): Promise<void> {
    if (left > 0) await this.write(left);
    this.seen = left > 1 ? left : 0;
    this.seen = left > 1 ? left : 0;
  }
}

export const isFree = (lease?: string) => (lease === undefined ? true : false);
`;

const found = findMutations(new Map([["runtime/src/lease/elector.ts", ELECTOR]]));

suite("mutation", (test) => {
  test("drops an await or a statement or negates a condition, with the names around it", () => {
    assert.equal(
      found.map(({ kind, within, text, occurrence }) => `${kind} in ${within}: ${text} (${occurrence})`),
      [
        "negated condition in Elector.#renew: left > 0 (0)",
        "dropped statement in Elector.#renew: await this.write(left); (0)",
        "dropped await in Elector.#renew: await this.write(left) (0)",
        "dropped statement in Elector.#renew: this.seen = left > 1 ? left : 0; (0)",
        "negated condition in Elector.#renew: left > 1 (0)",
        "dropped statement in Elector.#renew: this.seen = left > 1 ? left : 0; (1)",
        "negated condition in Elector.#renew: left > 1 (1)",
        "negated condition in isFree: lease === undefined (0)",
      ],
    );
  });

  test("names the enclosing function as V8 does", () => {
    const text = `class Lease {
  readonly #free = () => void this.take();
  constructor() {
    this.take();
  }
}
start();`;
    const sites = findMutations(new Map([["runtime/src/lease.ts", text]]));
    assert.equal(
      sites.map(({ text, functionName }) => [text, functionName]),
      [
        ["this.take();", "Lease"],
        ["start();", ""],
      ],
    );
    const arrow = findMutations(new Map([["runtime/src/lease.ts", text.replace("void this.take()", "{ go(); }")]]));
    assert.equal([arrow[0]?.text, arrow[0]?.functionName], ["go();", "#free"]);
  });

  test("changes only the code at its position", () => {
    const texts = found.map((site) => mutate(ELECTOR, site));
    assert.ok(texts[0]!.includes("if (!(left > 0)) await this.write(left);"));
    assert.ok(texts[1]!.includes("if (left > 0) ;\n"));
    assert.ok(texts[2]!.includes("if (left > 0) (this.write(left));"));
    assert.ok(texts[7]!.includes("(!(lease === undefined) ? true : false)"));
    for (const [index, { start, end, replacement }] of found.entries()) {
      assert.is(texts[index]!.length, ELECTOR.length - (end - start) + replacement.length);
      assert.ok(texts[index]!.startsWith(ELECTOR.slice(0, start)) && texts[index]!.endsWith(ELECTOR.slice(end)));
    }
  });

  test("keeps its key if its code moves to another file of the package", () => {
    const moved = findMutations(new Map([["runtime/src/operate/lease.ts", `// Moved.\n${ELECTOR}`]]));
    assert.equal(moved.map(mutationKey), found.map(mutationKey));
    const elsewhere = findMutations(new Map([["apiserver/src/lease.ts", ELECTOR]]));
    assert.not.equal(elsewhere.map(mutationKey), found.map(mutationKey));
  });

  test("is drawn deterministically by seed, without repetition, in random order", () => {
    const drawn = drawMutations(found, 5, 1).map(mutationKey);
    assert.equal(drawMutations(found, 5, 1).map(mutationKey), drawn);
    assert.is(new Set(drawn).size, 5);
    const all = drawMutations(found, 100, 1).map(mutationKey);
    assert.equal([...all].sort(), found.map(mutationKey).sort());
    const other = drawMutations(found, 100, 2).map(mutationKey);
    assert.not.equal(other, all);
  });
});
