//! The listing: address and bytes beside each source line.

use super::layout::Placed;
use crate::image::Image;

/// Bytes shown on one line.
const BYTES_SHOWN: usize = 8;

/// Renders the listing; `starts` are the addresses of the three sections.
pub(super) fn render(items: &[Placed], bytes: &[u8], image: &Image, starts: [u32; 3]) -> String {
    let mut text = String::from("address   contents          source\n");
    let mut last = None;
    for item in items {
        let address = starts[item.section as usize] + item.offset;
        let shown = &bytes[address as usize..(address + item.size) as usize];
        let mut contents: String = shown
            .iter()
            .take(BYTES_SHOWN)
            .map(|byte| format!("{byte:02x}"))
            .collect();
        if shown.len() > BYTES_SHOWN {
            contents.push('+');
        }
        let place = (&item.place.file, item.place.line, &item.place.text);
        // A line that gives several instructions is shown once, beside the first.
        let source = if last == Some(place) {
            String::new()
        } else {
            format!("{}:{}: {}", item.place.file, item.place.line, item.place.text)
        };
        last = Some(place);
        text.push_str(&format!("{address:08x}  {contents:<17} {source}\n"));
    }
    text.push_str("\nsymbols\n");
    for (address, name) in &image.symbols {
        text.push_str(&format!("{address:08x}  {name}\n"));
    }
    text
}
