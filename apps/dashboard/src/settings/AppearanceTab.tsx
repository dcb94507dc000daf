import { chooseDensity, type Density, ROW_HEIGHT, useDensity } from '../theme/density.ts';
import { chooseTheme, type ThemeChoice, useThemeChoice } from '../theme/theme.ts';
import { Panel } from './parts.tsx';

function Choices<T extends string>({
  label,
  value,
  options,
  onChange,
}: {
  label: string;
  value: T;
  options: readonly (readonly [value: T, label: string, description: string])[];
  onChange: (value: T) => void;
}) {
  return (
    <fieldset className="flex flex-col">
      <legend className="sr-only">{label}</legend>
      {options.map(([option, name, description]) => (
        <label key={option} className="grid min-h-[28px] grid-cols-[24px_110px_minmax(0,1fr)] items-center">
          <input
            type="radio"
            name={label}
            className="justify-self-start accent-[var(--accent)]"
            checked={value === option}
            onChange={() => onChange(option)}
          />
          <span>{name}</span>
          <span className="text-ink-3">{description}</span>
        </label>
      ))}
    </fieldset>
  );
}

const themes: readonly (readonly [ThemeChoice, string, string])[] = [
  ['system', 'System', 'Follows the system setting'],
  ['light', 'Light', ''],
  ['dark', 'Dark', ''],
];
const densities: readonly (readonly [Density, string, string])[] = [
  ['compact', 'Compact', `${ROW_HEIGHT.compact} px per row: more rows on the screen`],
  ['comfortable', 'Comfortable', `${ROW_HEIGHT.comfortable} px per row`],
];
/** Theme and density, stored in this browser. */
export function AppearanceTab() {
  const theme = useThemeChoice();
  const density = useDensity();
  return (
    <>
      <Panel title="Theme" about="The settings on this page apply to this browser only.">
        <Choices label="Theme" value={theme} options={themes} onChange={chooseTheme} />
      </Panel>
      <Panel title="Row height">
        <Choices label="Row height" value={density} options={densities} onChange={chooseDensity} />
      </Panel>
    </>
  );
}
