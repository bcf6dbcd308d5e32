// Each option has an example, in a page (readme-fences.test.ts compiles them) or in its doc comment.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Node, Project, type InterfaceDeclaration } from "ts-morph";
import { fencesOf, findDocuments } from "../../support/projects/fences.js";
import { repositoryRoot } from "../../support/repository.js";
import { assert, suite } from "../../support/suite.js";

/** What users fill in, by its file below runtime/src. */
const OPTIONS: readonly (readonly [file: string, names: readonly string[]])[] = [
  ["api/operator.ts", ["OperatorOptions"]],
  ["api/operator-endpoints.ts", ["EndpointSettings"]],
  ["operate/lease-lock.ts", ["LeaderElectionSettings"]],
  ["operate/event-loop-monitor.ts", ["WatchdogSettings"]],
  ["operate/proof-key-secret.ts", ["ProofKeySettings"]],
  ["queue/processor.ts", ["RetryOptions"]],
  ["queue/schedule-settings.ts", ["ScheduleSettings", "RateLimitOptions"]],
  ["reconcile/controller-definition.ts", ["ControllerDefinition"]],
  ["sources/informer-source.ts", ["InformerSourceOptions"]],
  ["sources/polling-sources.ts", ["PollingSourceOptions", "PerPrimaryPollingSourceOptions"]],
  ["sources/caching-inbound-source.ts", ["CachingInboundSourceOptions"]],
  ["sources/external-source.ts", ["ExternalSourceOptions"]],
];

suite("option examples", (test) => {
  const project = new Project({ skipAddingFilesFromTsConfig: true });
  const declarations = OPTIONS.flatMap(([file, names]) => {
    const source = project.addSourceFileAtPath(join(repositoryRoot, "runtime/src", file));
    return names.map((name) => source.getInterfaceOrThrow(name));
  });
  const shown = namesSetIn(project);

  test("set every option of operators and controllers", () => {
    assert.equal(
      declarations.flatMap((declaration) => optionsWithoutExample(declaration, shown)),
      [],
    );
  });
});

/** Returns the names that the TypeScript of the pages gives a value, as a member of an object. */
function namesSetIn(project: Project): ReadonlySet<string> {
  const fences = findDocuments().flatMap((page) => fencesOf(page, readFileSync(join(repositoryRoot, page), "utf8")));
  const code = fences.filter(({ info }) => info === "ts");
  return new Set(
    code.flatMap((fence, index) =>
      project
        .createSourceFile(`fence-${index}.ts`, fence.code)
        .getDescendants()
        .filter(
          (node) =>
            Node.isPropertyAssignment(node) ||
            Node.isShorthandPropertyAssignment(node) ||
            Node.isMethodDeclaration(node),
        )
        .map((member) => member.getName()),
    ),
  );
}

function optionsWithoutExample(declaration: InterfaceDeclaration, shown: ReadonlySet<string>): string[] {
  const members = [...declaration.getProperties(), ...declaration.getMethods()];
  return members
    .filter((member) => !shown.has(member.getName()))
    .filter((member) => !member.getJsDocs().some((comment) => /Example:|@example/.test(comment.getText())))
    .map((member) => `${declaration.getName()}.${member.getName()}`);
}
