import type { MeView } from '@palestra/protocol';
import { switchOrganisation } from '../data/organisation.ts';
import { Menu, MenuChoice } from './Menu.tsx';

/** The organisation of the page. Switches between those of the reader. */
export function OrganisationMenu({ me: { org, organisations } }: { me: MeView }) {
  if (organisations.length < 2)
    return (
      <span className="rail-words min-w-0 min-[761px]:basis-full" title={`Organisation ${org.name}`}>
        <span className="chip max-w-full">
          <span className="truncate">{org.name}</span>
        </span>
      </span>
    );
  return (
    <span className="min-w-0 min-[761px]:basis-full [&>button]:max-w-full">
      <Menu
        label="Organisation"
        align="start"
        button={
          <>
            <span className="rail-words truncate">{org.name} ▾</span>
            <span className="rail-letter" aria-hidden="true" title={`Organisation ${org.name}`}>
              {[...org.name][0]!.toUpperCase()}
            </span>
          </>
        }
      >
        <MenuChoice
          title="Organisation"
          value={org.name}
          options={organisations.map(({ name }) => ({ value: name, label: name }))}
          onChange={(name) => name !== org.name && switchOrganisation(name)}
        />
      </Menu>
    </span>
  );
}
