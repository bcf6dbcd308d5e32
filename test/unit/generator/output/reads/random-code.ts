// Random code that reads pods in every way that JavaScript has, as the body of a reconcile with `secondary` and `context`.
import fc from "../../../../support/fast-check.js";

type Text = fc.Arbitrary<string>;

const join = (template: (...parts: string[]) => string, ...parts: Text[]): Text =>
  fc.tuple(...parts).map((texts) => template(...texts));

const group = fc.constantFrom("status", "spec", "metadata");
const leaf = fc.constantFrom("phase", "podIP", "nodeName", "priority", "name", "labels", "conditions", "nodeSelector");

const { pods, pod, part, value } = fc.letrec<{ pods: string; pod: string; part: string; value: string }>((tie) => {
  const many = tie("pods");
  const one = tie("pod");
  const inner = tie("part");
  const read = tie("value");
  return {
    pods: fc.oneof(
      { maxDepth: 2, depthIdentifier: "code" },
      fc.constantFrom(
        "secondary.pods",
        'secondary["pods"]',
        "context.secondaries(Pod)",
        "(({ pods }) => pods)(secondary)",
      ),
      join((list) => `[...${list}]`, many),
      join((list) => `${list}.slice(0)`, many),
      join((list) => `${list}.filter(() => true)`, many),
      join((list, each) => `${list}.filter((p) => (${each}) !== 7)`, many, valueOfVariable("p")),
      join((list) => `${list}.map((p) => p)`, many),
      join((list) => `${list}.map((p) => [p]).flat()`, many),
      join((list) => `${list}.flatMap((p) => [p])`, many),
      join((list) => `identity(${list})`, many),
      join((list, each) => `${list}.toSorted((p, q) => ((${each}) === undefined ? 0 : 0))`, many, valueOfVariable("q")),
    ),
    pod: fc.oneof(
      { maxDepth: 2, depthIdentifier: "code" },
      { arbitrary: join((list) => `${list}[0]`, many), weight: 6 },
      join((list) => `${list}.at(0)`, many),
      join((list, each) => `${list}.find((p) => (${each}) !== 7)`, many, valueOfVariable("p")),
      join((list) => `(([first]) => first)(${list})`, many),
      join((list) => `${list}.reduce((p) => p)`, many),
      join((object) => `identity(${object})`, one),
      join((object) => `[${object}][0]`, one),
      join((object) => `(true ? ${object} : undefined)`, one),
      join((object) => `(${object} ?? undefined)`, one),
      join((object) => `(${object} && ${object})`, one),
      { arbitrary: unusual(one), weight: 2 },
    ),
    part: fc.oneof(
      join((object, name) => `${object}?.${name}`, one, group),
      join((object, name) => `${object}?.["${name}"]`, one, group),
      join((object, name) => `${object}?.[key("${name}")]`, one, group),
      join((object, name) => `(({ ${name} }) => ${name})(${object})`, one, group),
      join((object, name) => `(({ ${name}: x = {} }) => x)(${object})`, one, group),
      join((object, name) => `(({ ["${name}"]: x }) => x)(${object})`, one, group),
      join((object, name) => `(({ apiVersion, ...rest }) => rest.${name})(${object})`, one, group),
      join((object) => `identity(${object})`, inner),
    ),
    value: fc.oneof(
      join((object, name) => `${object}?.${name}`, inner, leaf),
      join((object, name) => `${object}?.["${name}"]`, inner, leaf),
      join((object, name) => `(({ ${name} }) => ${name})(${object} ?? {})`, inner, leaf),
      join((object, name, each) => `(({ ${name}: { ${each} } = {} }) => ${each})(${object})`, one, group, leaf),
      join((object) => `JSON.stringify(${object})`, fc.oneof({ arbitrary: inner, weight: 4 }, one, many)),
      join((object) => `Object.keys(${object} ?? {}).length`, inner),
      join((object) => `Object.entries(${object} ?? {}).length`, inner),
      join((object) => `(${object} === undefined)`, fc.oneof(inner, read)),
      join((object) => `!${object}`, fc.oneof(inner, one)),
      join((object) => `typeof ${object}`, inner),
      join((object, name) => `("${name}" in (${object} ?? {}))`, inner, leaf),
      join((object) => `\`\${${object}}\``, read),
      join((list) => `${list}.length`, many),
      join((list, name) => `${list}.map(function (p) { return arguments[0].${name}; })`, many, group),
      join((list, each) => `${list}.map((p) => ${each})`, many, valueOfVariable("p")),
      join((list, each) => `${list}.some((p) => Boolean(${each}))`, many, valueOfVariable("p")),
      join((list, each) => `collect(${list}, (p) => ${each})`, many, valueOfVariable("p")),
      join((list, name, each) => `${list}.map(({ ${name} }) => ${name}?.${each})`, many, group, leaf),
    ),
  };
});

/** Returns a way to the same object that is hard to follow. */
function unusual(one: Text): Text {
  return fc.oneof(
    join((object) => `library(${object})`, one),
    join((object) => `{ ...${object} }`, one).map((text) => `(${text})`),
    join((object) => `({ p: ${object} }).p`, one),
    join((object) => `(function () { return arguments[0]; })(${object})`, one),
    join((object) => `(function (p) { return p?.kind && arguments[0]; })(${object})`, one),
    join((object) => `((p, ...others) => others[0] ?? p)(${object})`, one),
    join((object) => `((...all) => all[0])(${object})`, one),
    join((object) => `tag\`\${${object}}\``, one),
    join((object) => `(() => ${object})()`, one),
    join((object) => `(0, ${object})`, one),
    join((object) => `new Map([[1, ${object}]]).get(1)`, one),
    join((object) => `holder(${object}).held`, one),
    join((object) => `new Box(${object}).get()`, one),
    join((object) => `identity.call(undefined, ${object})`, one),
    join((object) => `identity.bind(undefined, ${object})()`, one),
    join((object) => `identity(...[${object}])`, one),
    join((object) => `((p = ${object}) => p)()`, one),
  );
}

/** Returns a read of something in a variable. */
function valueOfVariable(variable: string): Text {
  return fc.oneof(
    join((name, each) => `${variable}.${name}?.${each}`, group, leaf),
    join((name) => `${variable}.${name}`, group),
    join((name, each) => `${variable}["${name}"]?.${each}`, group, leaf),
    fc.constantFrom(`JSON.stringify(${variable}.spec)`, `${variable} === undefined`, `library(${variable})`),
  );
}

const statement: Text = fc.oneof(
  join((each) => `out.push(${each});`, value),
  join((each) => `out.push(${each});`, part),
  join((object, each) => `{ const p = ${object}; out.push(${each}); }`, pod, valueOfVariable("p")),
  join((object, each) => `{ let p = ${object}; out.push(${each}); }`, pod, valueOfVariable("p")),
  join((object, each) => `{ let p; p = ${object}; out.push(${each}); }`, pod, valueOfVariable("p")),
  join((list, each) => `for (const p of ${list}) out.push(${each});`, pods, valueOfVariable("p")),
  join(
    (list, each) => `for (let i = 0; i < 1; i++) { const p = ${list}[i]; out.push(${each}); }`,
    pods,
    valueOfVariable("p"),
  ),
  join((list, name, each) => `for (const { ${name} } of ${list}) out.push(${name}?.${each});`, pods, group, leaf),
  join((object, each) => `switch (${object}?.status?.phase) { default: out.push(${each}); }`, pod, value),
  join((object, each) => `if (${object}) out.push(${each});`, part, value),
  join((object) => `out.push(helper(${object}));`, pod),
  join((object) => `{ const { ...all } = ${object}; out.push(all); }`, pod),
  join((object, name) => `{ const read = (p) => p.${name}; out.push(read(${object})); }`, pod, group),
);

/** The body of a reconcile that puts all that it reads into `out`. */
export const randomBody: Text = fc.array(statement, { minLength: 1, maxLength: 2 }).map((lines) => lines.join("\n"));

/** What the bodies call: some in the project, and some in a library. */
export const HELPERS = `
const identity = (x) => x;
const key = (name) => name;
const tag = (strings, x) => x;
const holder = (held) => ({ held });
class Box { constructor(x) { this.x = x; } get() { return this.x; } }
function helper(p) { const { status } = p; return [status?.phase, p.spec?.nodeName]; }
function collect(list, f) { const found = []; for (const each of list) found.push(f(each)); return found; }
`;
