/** An exact fraction in lowest terms with a positive denominator. */
export class Rational {
  readonly numerator: bigint;
  readonly denominator: bigint;

  constructor(numerator: bigint | number, denominator: bigint | number = 1n) {
    const [top, bottom] = [BigInt(numerator), BigInt(denominator)];
    if (bottom === 0n) throw new RangeError('a fraction needs a denominator other than 0');
    const divisor = gcd(top, bottom) * (bottom < 0n ? -1n : 1n);
    this.numerator = top / divisor;
    this.denominator = bottom / divisor;
  }

  /** Parses `-3`, `7/4`, `1.25`; null for anything else. */
  static parse(text: string): Rational | null {
    const plain = text.trim().replaceAll('−', '-').replaceAll(/\s+/g, '');
    if (plain.length > 200) return null;
    const fraction = /^([-+]?\d+)(?:\/(\d+))?$/.exec(plain);
    if (fraction) {
      const denominator = BigInt(fraction[2] ?? '1');
      return denominator === 0n ? null : new Rational(BigInt(fraction[1]!), denominator);
    }
    const decimal = /^([-+]?)(\d*)\.(\d+)$/.exec(plain);
    if (!decimal) return null;
    const [, sign, whole, digits] = decimal;
    return new Rational(BigInt(`${sign === '-' ? '-' : ''}${whole}${digits}`), 10n ** BigInt(digits!.length));
  }

  plus({ numerator, denominator }: Rational): Rational {
    return new Rational(this.numerator * denominator + numerator * this.denominator, this.denominator * denominator);
  }
  times({ numerator, denominator }: Rational): Rational {
    return new Rational(this.numerator * numerator, this.denominator * denominator);
  }
  equals({ numerator, denominator }: Rational): boolean {
    return this.numerator === numerator && this.denominator === denominator;
  }
  toString(): string {
    return this.denominator === 1n ? `${this.numerator}` : `${this.numerator}/${this.denominator}`;
  }
}

/** Greatest common divisor, positive; 1 for two zeros. */
export function gcd(a: bigint, b: bigint): bigint {
  let [x, y] = [a < 0n ? -a : a, b < 0n ? -b : b];
  while (y !== 0n) [x, y] = [y, x % y];
  return x === 0n ? 1n : x;
}
