/** Stands in the place of a field that the status does not have; its text is what the compiler prints. */
export interface NoSuchField<Name, Known> {
  readonly "the status has no such field": Name;
  /** The fields that the name resembles, or all of them. */
  readonly "it has": Known;
}

type Misspelled<Name, Known> = [DidYouMean<Name, Known>] extends [never]
  ? NoSuchField<Name, Known>
  : NoSuchField<Name, DidYouMean<Name, Known>>;

type DidYouMean<Name, Known> = Known extends string
  ? IsSlip<Lowercase<Name & string>, Lowercase<Known>> extends true
    ? `did you mean '${Known}'?`
    : never
  : never;

/** Tells whether one letter of a word was left out, added, replaced, or exchanged with the next one. Equal words count, too. */
type IsSlip<Word, Meant> = Word extends Meant
  ? true
  : Word extends `${infer First}${infer Rest}`
    ? Meant extends `${infer MeantFirst}${infer MeantRest}`
      ? First extends MeantFirst
        ? IsSlip<Rest, MeantRest>
        : Word extends MeantRest
          ? true
          : Rest extends Meant | MeantRest
            ? true
            : [Rest, MeantRest] extends [`${MeantFirst}${infer After}`, `${First}${infer MeantAfter}`]
              ? After extends MeantAfter
                ? true
                : false
              : false
      : Rest extends ""
        ? true
        : false
    : Meant extends `${infer _}${infer Rest}`
      ? Rest extends ""
        ? true
        : false
      : false;

/**
 * A status as `Wanted`, without fields that `Wanted` does not have, at any depth.
 *
 * Where nothing says what is wanted (`undefined` without exactOptionalPropertyTypes), it is whatever is given. The compiler infers `Given` so.
 */
export type ExactStatus<Given, Wanted> = [Wanted] extends [undefined] ? Given : Wanted & Exact<Given, Wanted>;

/** The status that a control has. */
export type StatusOf<Given, Wanted> = [Wanted] extends [undefined] ? Given : Wanted;

type Exact<Given, Wanted> = Given extends readonly (infer Item)[]
  ? readonly Exact<Item, ItemOf<Wanted>>[]
  : [FieldOf<Wanted>] extends [never]
    ? unknown
    : Given extends object
      ? {
          readonly [Field in keyof Given]: Field extends FieldOf<Wanted>
            ? Exact<Given[Field], ValueOf<Wanted, Field>>
            : Misspelled<Field, FieldOf<Wanted>>;
        }
      : unknown;

// A member of a union may be what is given.
type FieldOf<Wanted> = Wanted extends readonly unknown[] ? never : Wanted extends object ? keyof Wanted : never;
type ValueOf<Wanted, Field> = Wanted extends object ? (Field extends keyof Wanted ? Wanted[Field] : never) : never;
type ItemOf<Wanted> = Wanted extends readonly (infer Item)[] ? Item : never;
