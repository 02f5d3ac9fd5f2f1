//! Convolutions and matrix products.

use lone_mil::Given;

use crate::author::case;
use crate::oracle::{self, Conv2d, noise};
use crate::{Kind, OpCase, Tensor};

pub(super) fn cases() -> Vec<OpCase> {
    let mut cases = vec![
        case(
            "conv with a kernel of one element is a matrix product over channels",
            Kind::Exact,
            vec![Tensor::f16([1, 2, 1, 2], &[1.0, 2.0, 3.0, 4.0])],
            |a, v| {
                let weight = a.weight([3, 2, 1, 1], &[1.0, 0.0, 0.0, 1.0, 2.0, -1.0])?;
                let bias = a.weight([3], &[0.0, 10.0, 100.0])?;
                Ok(vec![a.b.conv1x1_bias(v[0], weight, bias)?])
            },
            vec![Tensor::f16([1, 3, 1, 2], &[1.0, 2.0, 13.0, 14.0, 99.0, 100.0])],
        ),
        conv_1d(),
        conv_same(),
    ];
    // Channels in, positions, channels out: around the widths of vector registers and of tiles.
    for (c, w, o) in
        [(1, 1, 1), (7, 1, 5), (64, 1, 33), (257, 1, 8), (40, 3, 17), (32, 8, 16), (65, 64, 19), (33, 37, 70)]
    {
        cases.push(convolution("pointwise", Conv2d::pointwise(c, w, o)));
    }
    let plain = Conv2d { h: 6, w: 7, kernel: [3, 2], ..Conv2d::pointwise(4, 1, 6) };
    cases.extend([
        convolution("with a kernel", plain),
        convolution("with strides", Conv2d { strides: [2, 3], ..plain }),
        convolution("with padding", Conv2d { pad: [1, 2, 0, 1], ..plain }),
        convolution("with dilations", Conv2d { dilations: [2, 3], ..plain }),
        convolution("in groups", Conv2d { groups: 2, ..plain }),
        convolution("of each channel alone", Conv2d { groups: 4, o: 8, ..plain }),
        convolution("of several images", Conv2d { n: 3, ..plain }),
        convolution(
            "with all of it",
            Conv2d { n: 2, groups: 2, strides: [1, 2], pad: [2, 1, 1, 0], dilations: [2, 1], ..plain },
        ),
    ]);
    cases.extend(matrix_products());
    cases.extend(linears());
    cases
}

fn ints(values: &[usize]) -> Given {
    let values: Vec<i32> = values.iter().map(|&value| value as i32).collect();
    values.as_slice().into()
}

fn convolution(what: &str, conv: Conv2d) -> OpCase {
    let Conv2d { n, c, h, w, o, kernel, strides, pad, dilations, groups } = conv;
    let weight_shape = [o, c / groups, kernel[0], kernel[1]];
    let x = noise(3, n * c * h * w);
    let weight = noise(4, weight_shape.iter().product());
    let bias = noise(5, o);
    let out = conv.out();
    let expected = conv.run(&x, &weight, Some(&bias));
    case(
        format!("conv {what}: ({n},{c},{h},{w}) with {weight_shape:?}"),
        Kind::Summed,
        vec![Tensor::f16([n, c, h, w], &x)],
        |a, v| {
            let args = [
                ("x", v[0].into()),
                ("weight", a.weight(weight_shape, &weight)?.into()),
                ("bias", a.weight([o], &bias)?.into()),
                ("strides", ints(&strides)),
                ("pad_type", if pad == [0; 4] { "valid".into() } else { "custom".into() }),
                ("pad", ints(&pad)),
                ("dilations", ints(&dilations)),
                ("groups", (groups as i32).into()),
            ];
            Ok(vec![a.op("conv", &args)?])
        },
        vec![Tensor::f16([n, o, out[0], out[1]], &expected)],
    )
}

fn conv_1d() -> OpCase {
    case(
        "conv over one axis slides its taps",
        Kind::Exact,
        vec![Tensor::f16([1, 1, 5], &[1.0, 2.0, 3.0, 4.0, 5.0])],
        |a, v| {
            let weight = a.weight([1, 1, 3], &[1.0, 10.0, 100.0])?;
            Ok(vec![a.op("conv", &[("x", v[0].into()), ("weight", weight.into())])?])
        },
        vec![Tensor::f16([1, 1, 3], &[321.0, 432.0, 543.0])],
    )
}

fn conv_same() -> OpCase {
    case(
        "conv padded to the same extent puts the odd zero after, or before",
        Kind::Exact,
        vec![Tensor::f16([1, 1, 3], &[1.0, 2.0, 3.0])],
        |a, v| {
            let weight = a.weight([1, 1, 2], &[1.0, 10.0])?;
            let mut padded = |pad: &str| {
                a.op("conv", &[("x", v[0].into()), ("weight", weight.into()), ("pad_type", pad.into())])
            };
            Ok(vec![padded("same")?, padded("same_lower")?])
        },
        vec![Tensor::f16([1, 1, 3], &[21.0, 32.0, 3.0]), Tensor::f16([1, 1, 3], &[10.0, 21.0, 32.0])],
    )
}

fn matrix_products() -> Vec<OpCase> {
    let mut cases = Vec::new();
    for (m, k, n) in [(1, 64, 70), (5, 3, 2), (17, 33, 9), (4, 129, 31)] {
        let (x, y) = (noise(6, m * k), noise(7, k * n));
        let expected = Tensor::f16([m, n], &oracle::matmul(&x, &y, [m, k, n]));
        for (transpose_x, transpose_y) in [(false, false), (false, true), (true, false), (true, true)] {
            let x = if transpose_x {
                Tensor::f16([k, m], &oracle::transpose(&x, m, k))
            } else {
                Tensor::f16([m, k], &x)
            };
            let y = if transpose_y {
                Tensor::f16([n, k], &oracle::transpose(&y, k, n))
            } else {
                Tensor::f16([k, n], &y)
            };
            cases.push(case(
                format!("matmul of {m}, {k}, {n}, transposed: {transpose_x}, {transpose_y}"),
                Kind::Summed,
                vec![x, y],
                |a, v| Ok(vec![a.b.matmul(v[0], v[1], transpose_x, transpose_y)?]),
                vec![expected.clone()],
            ));
        }
    }
    let product = |name: &str, x: Tensor, y: Tensor, z: Tensor| {
        case(name, Kind::Exact, vec![x, y], |a, v| Ok(vec![a.b.matmul(v[0], v[1], false, false)?]), vec![z])
    };
    cases.extend([
        product(
            "matmul broadcasts its leading axes",
            Tensor::f16([2, 1, 1, 2], &[1.0, 2.0, 3.0, 4.0]),
            Tensor::f16([3, 2, 1], &[1.0, 0.0, 0.0, 1.0, 1.0, 1.0]),
            Tensor::f16([2, 3, 1, 1], &[1.0, 2.0, 3.0, 3.0, 4.0, 7.0]),
        ),
        product(
            "matmul takes a vector for a row",
            Tensor::f16([2], &[1.0, 2.0]),
            Tensor::f16([2, 2], &[1.0, 2.0, 3.0, 4.0]),
            Tensor::f16([2], &[7.0, 10.0]),
        ),
        product(
            "matmul takes a vector for a column",
            Tensor::f16([2, 2], &[1.0, 2.0, 3.0, 4.0]),
            Tensor::f16([2], &[1.0, 2.0]),
            Tensor::f16([2], &[5.0, 11.0]),
        ),
        product(
            "matmul of integers",
            Tensor::i32([1, 2], &[3, -4]),
            Tensor::i32([2, 2], &[1, 2, 3, 4]),
            Tensor::i32([1, 2], &[-9, -10]),
        ),
        product(
            "matmul of fp32",
            Tensor::f32([1, 2], &[0.5, 3.0]),
            Tensor::f32([2, 1], &[70_000.0, 0.25]),
            Tensor::f32([1, 1], &[35_000.75]),
        ),
    ]);
    cases
}

fn linears() -> Vec<OpCase> {
    let (rows, k, o) = (3, 33, 18);
    let (x, weight) = (noise(8, rows * k), noise(9, o * k));
    let expected = oracle::matmul(&x, &oracle::transpose(&weight, o, k), [rows, k, o]);
    vec![
        case(
            "linear multiplies with the transposed weight",
            Kind::Summed,
            vec![Tensor::f16([1, rows, k], &x)],
            |a, v| {
                let weight = a.weight([o, k], &weight)?;
                Ok(vec![a.op("linear", &[("x", v[0].into()), ("weight", weight.into())])?])
            },
            vec![Tensor::f16([1, rows, o], &expected)],
        ),
        case(
            "linear adds its bias",
            Kind::Exact,
            vec![Tensor::f16([2], &[1.0, 2.0])],
            |a, v| {
                let (weight, bias) = (a.weight([2, 2], &[1.0, 1.0, 0.0, 3.0])?, a.weight([2], &[0.5, -6.0])?);
                let args = [("x", v[0].into()), ("weight", weight.into()), ("bias", bias.into())];
                Ok(vec![a.op("linear", &args)?])
            },
            vec![Tensor::f16([2], &[3.5, 0.0])],
        ),
    ]
}
