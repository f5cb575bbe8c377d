// What is wider than the screen scrolls in its own box: let the keyboard reach that box.
function reach() {
    const boxes = "pre, .table-wrapper, .math-wrapper, .output, article :is(p, div):has(> img)";
    for (const box of document.querySelectorAll(boxes)) {
        const scrolls = box.scrollWidth > box.clientWidth || box.scrollHeight > box.clientHeight;
        if (scrolls && getComputedStyle(box).overflowX !== "visible") box.tabIndex = 0;
        else box.removeAttribute("tabindex");
    }
}
window.addEventListener("load", reach);
window.addEventListener("resize", reach);
