import { readFileSync } from "node:fs";
import { join } from "node:path";
import fc from "../../../../support/fast-check.js";
import {
  CONTROLLER_SETTINGS,
  OPERATOR_SETTINGS,
  helpOf,
  mergeSettings,
  readEnvironment,
  readFlags,
  settingsOf,
} from "#runtime/operate/settings.js";
import { parseSettings } from "#runtime/operate/settings-file.js";
import * as types from "#runtime/operate/setting-types.js";
import type { SettingType, SettingValue } from "#runtime/operate/setting-types.js";
import { repositoryRoot } from "../../../../support/repository.js";
import { runs } from "../../../../support/runs.js";
import { settingsSchema } from "../../../../support/projects/settings-schema.js";
import { assert, suite } from "../../../../support/suite.js";

const settings = settingsOf(["page", "web-job"]);

const problemOf = async (read: () => unknown) => {
  try {
    await read();
  } catch (error) {
    return (error as Error).message;
  }
  return "";
};

/** Texts that a setting of a type can be set to, each with the value that it means. */
function valuesOf(type: SettingType): fc.Arbitrary<readonly [text: string, value: SettingValue]> {
  const word = fc.stringMatching(/^[a-z]([a-z0-9-]{0,7}[a-z0-9])?$/);
  const { type: kind, minimum: min = 0, maximum: max = 100, enum: words = [] } = type.schema as JsonSchema;
  if (type === types.namespace || type === types.objectName) return word.map((each) => [each, each] as const);
  if (type === types.labelSelector || type === types.fieldSelector)
    return fc.tuple(word, word).map(([key, value]) => [`${key}=${value}`, `${key}=${value}`] as const);
  if (type === types.boolean) return fc.boolean().map((each) => [String(each), each] as const);
  if (type === types.duration || type === types.secondsOrOff)
    return fc.tuple(fc.nat(99), fc.nat(59)).map(([m, s]) => [`${m}m${s}s`, m * 60_000 + s * 1000] as const);
  if (type === types.namespaces)
    return fc.array(word, { minLength: 1, maxLength: 3 }).map((each) => [each.join(","), each] as const);
  if (type === types.address || type === types.localAddress)
    return fc.nat(65_535).map((port) => [`127.0.0.1:${port}`, `127.0.0.1:${port}`] as const);
  if (type === types.file) return word.map((each) => [`/etc/${each}`, `/etc/${each}`] as const);
  if (kind === "integer") return fc.integer({ min, max: 9_999 }).map((each) => [String(each), each] as const);
  if (kind === "number")
    return fc.integer({ min: min * 4, max: max * 4 }).map((each) => [String(each / 4), each / 4] as const);
  return fc.constantFrom(...words).map((each) => [each, each] as const);
}

interface JsonSchema {
  readonly type?: string;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly enum?: readonly string[];
}

suite("operator settings", (test) => {
  test("have the same value from a flag, an environment variable and a file", () =>
    fc.assert(
      fc.asyncProperty(
        fc.constantFrom(...settings).chain((each) => valuesOf(each.type).map((value) => [each, value] as const)),
        async ([{ path, flag, env }, [text, value]]) => {
          for (const args of [[`--${flag}=${text}`], [`--${flag}`, text]])
            assert.equal([...readFlags(settings, args).values], [[path, value]]);
          if (env !== undefined) assert.equal([...readEnvironment(settings, { [env]: text })], [[path, value]]);
          const nested = path
            .split(".")
            .reduceRight<unknown>(
              (inner, name) => ({ [name]: inner }),
              typeof value === "number" && /[ms]$/.test(text) ? text : value,
            );
          assert.equal([...parseSettings(JSON.stringify(nested), { file: "f", settings })], [[path, value]]);
        },
      ),
      { numRuns: runs(400) },
    ));

  test("are taken from flags first, then from the environment, then from the file", () => {
    const of = (...pairs: readonly (readonly [string, SettingValue])[]) => new Map(pairs);
    const file = of(["logLevel", "debug"], ["stopTimeout", 1], ["kubeconfig", "f"]);
    const environment = of(["logLevel", "warn"], ["stopTimeout", 2]);
    const flags = of(["logLevel", "error"]);
    assert.equal(Object.fromEntries(mergeSettings(file, environment, flags)), {
      ...{ logLevel: "error", stopTimeout: 2, kubeconfig: "f" },
    });
  });

  test("have unique flags, variables and paths", () => {
    for (const member of ["path", "flag", "env"] as const) {
      const all = settings.flatMap((each) => each[member] ?? []);
      assert.is(new Set(all).size, all.length, member);
    }
  });

  test("accept the flags of kubebuilder", () => {
    const { values, config } = readFlags(settings, [
      ...["--leader-elect", "--leader-election-namespace=operators", "--leader-election-id", "shop"],
      ...["--health-probe-bind-address=:8081", "--metrics-bind-address", "0", "--kubeconfig=k", "--config=c.yaml"],
    ]);
    assert.is(config, "c.yaml");
    assert.equal(Object.fromEntries(values), {
      "leaderElection.enabled": true,
      "leaderElection.namespace": "operators",
      "leaderElection.name": "shop",
      healthProbeBindAddress: ":8081",
      metricsBindAddress: "0",
      kubeconfig: "k",
    });
    assert.is(readFlags(settings, ["--leader-elect=false"]).values.get("leaderElection.enabled"), false);
  });

  test("report all unknown names and invalid values at once, with file positions", async () => {
    assert.is(
      await problemOf(() => readFlags(settings, ["--lead", "--stop-timeout=10", "run", "--log-level"])),
      [
        "--lead: unknown flag; see --help",
        '--stop-timeout is "10", and has to be a duration such as "500ms", "15s" or "1h30m"',
        '"run": unknown flag; see --help',
        "--log-level needs a value",
      ].join("\n"),
    );
    assert.is(
      await problemOf(() => readEnvironment(settings, { LOG_LEVEL: "loud", LEADER_ELECT: "yes" })),
      'LOG_LEVEL is "loud", and has to be one of debug, info, warn, error, silent\nLEADER_ELECT is "yes", and has to be true or false',
    );
    const file = [
      "logLevel: loud",
      "leaderElection: { leaseDuration: 15 }",
      "metrics: true",
      "controllers:",
      "  page: { maxConcurrentReconciles: 0 }",
      "  job: {}",
      "namespaces: [1]",
      "stopTimeout: { a: 1 }",
    ].join("\n");
    assert.is(
      await problemOf(() => parseSettings(file, { file: "config.yaml", settings })),
      [
        'config.yaml:1:11: logLevel is "loud", and has to be one of debug, info, warn, error, silent',
        'config.yaml:2:34: leaderElection.leaseDuration is 15, and has to be a duration such as "500ms", "15s" or "1h30m"',
        `config.yaml:3:1: metrics is no setting; must be one of ${[...new Set(OPERATOR_SETTINGS.map(({ path }) => path.split(".")[0]!)), "controllers"].join(", ")}`,
        "config.yaml:5:36: controllers.page.maxConcurrentReconciles is 0, and has to be a whole number, 1 at least",
        "config.yaml:6:3: controllers.job is no controller of this operator; must be one of page, web-job",
        "config.yaml:7:13: namespaces is [1], and has to be a list of namespaces, or namespaces with commas between; one at least",
        'config.yaml:8:14: stopTimeout is {"a":1}, and has to be a duration such as "500ms", "15s" or "1h30m"',
      ].join("\n"),
    );
    assert.match(
      await problemOf(() => parseSettings("a: [", { file: "config.yaml", settings })),
      /^config\.yaml:1:5: /,
    );
    assert.is(
      await problemOf(() => parseSettings("- a", { file: "c", settings })),
      "c:1:1: the file has to be a map of settings",
    );
    assert.match(
      await problemOf(() => parseSettings("namespaces: *b", { file: "config.yaml", settings })),
      /^config\.yaml:.* alias/i,
    );
    assert.is(parseSettings("", { file: "c", settings }).size, 0);
    assert.is(parseSettings("leaderElection:\n", { file: "c", settings }).size, 0);
  });

  test("are listed in the help with flag and variable", () => {
    const help = helpOf(settings);
    for (const { flag, env } of settings) {
      assert.match(help, `--${flag}\n`);
      if (env !== undefined) assert.match(help, `[${env}]`);
    }
  });

  test("reject values that the API server or the operator would never accept", async () => {
    for (const [flag, value, words] of [
      ["namespaces", "Team_a", "a list of namespaces, or namespaces with commas between; one at least"],
      ["controllers.page.namespaces", "a,B", "a list of namespaces, or namespaces with commas between; one at least"],
      ["controllers.page.label-selector", "a=b=c", 'a label selector such as "app=web,tier!=cache"'],
      ["controllers.page.label-selector", "a in b", 'a label selector such as "app=web,tier!=cache"'],
      ["controllers.page.field-selector", "metadata.name", 'a field selector such as "metadata.name!=main"'],
      ["controllers.page.field-selector", "a=b=c", 'a field selector such as "metadata.name!=main"'],
      ["proof-key.name", "Key", 'the name of a Kubernetes object: lower-case letters, digits, "-" and "."'],
      ["proof-key.namespace", "a.b", 'the name of a namespace: lower-case letters, digits and "-"'],
      ["leader-election-id", "a_b", 'the name of a Kubernetes object: lower-case letters, digits, "-" and "."'],
      ["leader-election-namespace", "", 'the name of a namespace: lower-case letters, digits and "-"'],
      ["watchdog-timeout", "100ms", 'a duration of 1s or more, such as "20s", or "0s" for none'],
    ] as const)
      assert.is(
        await problemOf(() => readFlags(settings, [`--${flag}=${value}`])),
        `--${flag} is ${JSON.stringify(value)}, and has to be ${words}`,
      );
    const taken = ["--controllers.page.label-selector=a in (b, c),!d", "--controllers.page.field-selector="];
    assert.equal(
      [
        ...readFlags(settings, [
          ...taken,
          "--controllers.page.namespaces=all",
          "--watchdog-timeout=0s",
        ]).values.values(),
      ],
      ["a in (b, c),!d", "", ["all"], 0],
    );
  });

  test("match the published JSON Schema", () => {
    const published = readFileSync(join(repositoryRoot, "runtime/settings.schema.json"), "utf8");
    assert.is(published, `${JSON.stringify(settingsSchema(), undefined, 2)}\n`, "npm run golden:update writes it");
    const text = JSON.stringify(settingsSchema());
    for (const { path } of [...OPERATOR_SETTINGS, ...CONTROLLER_SETTINGS])
      assert.match(text, `"${path.split(".").at(-1)}"`);
  });

  test("convert a number to a string, but reject other types for numbers", () => {
    assert.is(types.readSetting(types.objectName, 0), "0");
    for (const given of ["", " ", "x", "1e999", true, null]) {
      let problem = "";
      try {
        types.readSetting(types.integer(0), given);
      } catch (error) {
        problem = (error as Error).message;
      }
      assert.match(problem, /has to be a whole number, 0 at least$/);
    }
    const part = types.number(0, 1);
    assert.is(types.readSetting(part, "0.5"), 0.5);
    assert.throws(() => types.readSetting(part, 1.1), "is 1.1, and has to be a number from 0 to 1");
  });
});
